/** Whether the server and this extension understand one another. */

import * as vscode from "vscode";

import type { Experimental } from "./protocol";

const PROTOCOL_VERSION = 1;

/** Tell what is wrong with the server's version, if anything is; it is used all the same. */
export function warnAboutVersion(facts: Experimental | undefined, log: vscode.LogOutputChannel): void {
  const problem = versionProblem(facts);
  if (problem !== undefined) {
    log.warn(problem);
    void vscode.window.showWarningMessage(`Tiro: ${problem}`);
  }
}

/** What is wrong with the server's version, in a sentence that says what to do. */
export function versionProblem(facts: Experimental | undefined): string | undefined {
  if (facts === undefined) {
    return "The program in tiro.server.command is no Tiro server: correct the setting, or install Tiro's";
  }
  const { protocolVersion, serverVersion } = facts;
  if (protocolVersion === PROTOCOL_VERSION) {
    return undefined;
  }
  const older = protocolVersion < PROTOCOL_VERSION ? "server" : "extension";
  return `The Tiro server ${serverVersion} speaks version ${protocolVersion} of the protocol, this extension version ${PROTOCOL_VERSION}: update the ${older}`;
}
