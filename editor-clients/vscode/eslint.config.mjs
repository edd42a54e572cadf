// The style of the client: typescript-eslint's strict, type-checked rules and the house's limits.
import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "out/", "node_modules/"] },
  js.configs.recommended,
  {
    files: ["**/*.ts", "**/*.mts"],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: ["./tsconfig.json", "./media/tsconfig.json"] },
    },
    rules: {
      complexity: ["error", 10],
      "max-lines": ["error", 300],
      "max-lines-per-function": ["error", { max: 40, skipBlankLines: true, skipComments: true }],
      "no-console": "error",
      eqeqeq: "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
    },
  },
  {
    // A suite is one function by nature, and generated code is as long as the protocol.
    files: ["test/**", "src/protocol.ts", "vitest.config.mts"],
    rules: { "max-lines-per-function": "off", "max-lines": "off" },
  },
  {
    files: ["**/*.mjs"],
    languageOptions: {
      globals: {
        console: "readonly", process: "readonly", setTimeout: "readonly", clearTimeout: "readonly",
        URL: "readonly", Buffer: "readonly", performance: "readonly",
      },
    },
  },
);
