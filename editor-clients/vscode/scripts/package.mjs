// Makes the .vsix and looks into it: `npm run package`.
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { finishChecks, ROOT, runTool } from "./report.mjs";

const MAX_BYTES = 1_000_000;
const WANTED = [
  "extension/LICENSE.txt",
  "extension/changelog.md",
  "extension/dist/chat.js",
  "extension/dist/extension.js",
  "extension/dist/languageClient.js",
  "extension/dist/licenses.txt",
  "extension/media/chat.css",
  "extension/media/icon.png",
  ...["ask", "diff", "emacs", "model", "native", "session"].map((name) => `extension/media/pictures/${name}.png`),
  "extension/media/tiro.svg",
  "extension/package.json",
  "extension/readme.md",
];

const vsix = fileURLToPath(new URL("../tiro-vscode.vsix", import.meta.url));
const isMade = runTool("vsce", "package", "--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links", "--out", vsix);
const lock = readFileSync(`${ROOT}package-lock.json`, "utf8");
finishChecks({
  "vsce makes a package": isMade,
  "the package holds what it needs and nothing else": isMade && sameFiles(entriesOf(vsix)),
  "the package is small": isMade && statSync(vsix).size < MAX_BYTES,
  "server/DEPENDENCIES.md says what is bundled and why": isMade && sameLists(bundled(), explained()),
  "the lock file names no registry": !lock.includes('"resolved"'),
});

function sameFiles(entries) {
  return sameLists(entries.filter((name) => name.startsWith("extension/")).sort(), WANTED);
}

function sameLists(found, wanted) {
  const isSame = JSON.stringify(found) === JSON.stringify(wanted);
  if (!isSame) {
    console.log(`found ${found.join(" ")}`);
  }
  return isSame;
}

/** The packages whose licences go along, by name. */
function bundled() {
  const parts = readFileSync(`${ROOT}dist/licenses.txt`, "utf8").split(/^-{80}\n\n/m);
  return parts.map((part) => part.split(" ")[0]);
}

/** The packages of the table of what is bundled. */
function explained() {
  const document = readFileSync(`${ROOT}../../server/DEPENDENCIES.md`, "utf8");
  const [table] = document.split("\nBundled, ")[1].split("\nOnly ");
  return [...table.matchAll(/^\| (\S+) \|/gm)].map(([, name]) => name).filter((name) => name !== "package");
}

/** The names in a zip file. */
function entriesOf(path) {
  const program = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
  const python = process.env.TIRO_PYTHON ?? "python3";
  return execFileSync(python, ["-c", program, path], { encoding: "utf8" }).trim().split("\n");
}
