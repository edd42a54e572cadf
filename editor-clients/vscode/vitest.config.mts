// The unit tests: plain Node, with a stand-in for the module that only a workbench has.
import { fileURLToPath } from "node:url";

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/unit/**/*.test.ts"],
    testTimeout: 180_000, // only what hangs is to fail by it
    hookTimeout: 180_000,
    alias: { vscode: fileURLToPath(new URL("test/unit/vscode.ts", import.meta.url)) },
  },
});
