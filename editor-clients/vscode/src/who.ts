/** The commands about who answers: agent and model, shown and chosen. */

import * as vscode from "vscode";

import type { Client } from "./client";
import type { Parts } from "./commands";
import { agentPicks, modelPicks } from "./pick";
import * as protocol from "./protocol";
import type { Session } from "./session";

export async function showCurrentAgent({ client }: Parts): Promise<protocol.AgentResult> {
  const result = await client.request(protocol.sessionGetAgent, {});
  const { agent } = result;
  if (agent === null) {
    const { default: name } = await client.request(protocol.agentsList, {});
    tell(`No agent is selected; the default, ${name ?? "none"}, will answer`);
  } else {
    tell(`The agent is ${agent.name}: ${agent.description}`);
  }
  return result;
}

export async function selectAgent({ client, session }: Parts, given?: unknown) {
  const name = typeof given === "string" ? given : await pickAgent(client, session);
  if (name === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.sessionSetAgent, { name });
  session.choose({ agent: result.agent?.name ?? null });
  return result;
}

async function pickAgent(client: Client, session: Session): Promise<string | undefined> {
  const { agents } = await client.request(protocol.agentsList, {});
  const pick = await vscode.window.showQuickPick(agentPicks(agents, session.status().agent), {
    title: "Select Agent",
    placeHolder: "Who answers from now on",
  });
  return pick?.value.name;
}

export async function selectModel({ client, session }: Parts, given?: unknown) {
  const name = typeof given === "string" ? given : await pickModel(client);
  if (name === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.modelsSet, { name });
  session.choose({ model: result.model });
  return result;
}

async function pickModel(client: Client): Promise<string | undefined> {
  const { models, current } = await client.request(protocol.modelsList, {});
  const pick = await vscode.window.showQuickPick(modelPicks(models, current), {
    title: "Select Model",
    placeHolder: "Which model answers from now on",
    matchOnDetail: true,
  });
  if (pick?.value.available === false) {
    tell(`${pick.value.name} cannot be used: ${pick.value.reason ?? "it does not answer"}`);
    return undefined;
  }
  return pick?.value.name;
}

function tell(text: string): void {
  void vscode.window.showInformationMessage(`Tiro: ${text}`);
}
