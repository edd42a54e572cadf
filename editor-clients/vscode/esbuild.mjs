// Bundles the extension and the script of its view into dist/: `npm run build`.
import { build } from "esbuild";

const common = { bundle: true, sourcemap: true, minify: true, logLevel: "warning" };

const results = await Promise.allSettled([
  build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  }),
  build({
    ...common,
    entryPoints: ["media/chat.ts"],
    outfile: "dist/chat.js",
    platform: "browser",
    format: "iife",
    target: "es2022",
  }),
]);
const failed = results.filter(({ status }) => status === "rejected").length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
