// Types and style of all sources: `npm run check`.
import { finishChecks, runTool } from "./report.mjs";

finishChecks({
  "types of the extension and its tests": runTool("tsc", "--noEmit"),
  "types of the view": runTool("tsc", "--noEmit", "--project", "media"),
  "style": runTool("eslint", "--max-warnings", "0", "."),
});
