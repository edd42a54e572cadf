/** The page of the Tiro view, and all that it may load. */

/** Where the page finds its parts, as the webview names them. */
export interface PageParts {
  style: string;
  script: string;
  /** The source of the style sheet, for the content security policy. */
  source: string;
  nonce: string;
}

/** The page; its content security policy lets in one style sheet and one script. */
export function pageHtml({ style, script, source, nonce }: PageParts): string {
  const policy = [
    "default-src 'none'",
    `style-src ${source}`,
    `script-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1.0">
  <link rel="stylesheet" href="${style}">
  <title>Tiro</title>
</head>
${BODY}
<script nonce="${nonce}" src="${script}"></script>
</html>`;
}

const BODY = `<body>
  <main id="transcript" tabindex="0" role="log" aria-live="off" aria-label="Conversation with Tiro">
    <button id="earlier" type="button" hidden>Show Earlier Messages</button>
    <p id="empty" hidden>Ask about your code. The selection in the editor goes along; the conversation is
      kept in your config directory.</p>
    <div id="items"></div>
  </main>
  <button id="follow" type="button" hidden>Jump to the End</button>
  <section id="question" aria-label="Question" hidden></section>
  <form id="composer" aria-label="Prompt">
    <div id="restricted" role="note" hidden><span>This workspace is not trusted: Tiro reads its files and
      answers, but changes none and runs no command.</span>
      <button id="trust" type="button">Manage Workspace Trust</button></div>
    <ul id="chips" aria-label="Attachments"></ul>
    <ul id="mentions" role="listbox" aria-label="Files to attach" hidden></ul>
    <textarea id="prompt" rows="1" aria-label="Ask Tiro" placeholder="Ask Tiro"
      aria-describedby="hint" aria-autocomplete="list" aria-controls="mentions"></textarea>
    <span id="hint" class="unseen">Enter sends, Shift+Enter starts a new line, @ names a file to
      attach, Arrow Up brings earlier prompts back, Escape cancels the answer</span>
    <div id="bar">
      <button id="attach" type="button" class="quiet" title="Attach a file">Attach…</button>
      <button id="agent" type="button" class="quiet" title="Select the agent"></button>
      <button id="model" type="button" class="quiet" title="Select the model"></button>
      <button id="send" type="submit" disabled>Send</button>
      <button id="cancel" type="button" hidden>Cancel</button>
    </div>
    <div id="state"><span id="activity"></span><button id="tokens" type="button" class="quiet"
      title="Size of the next request"></button></div>
  </form>
  <div id="live" class="unseen" role="status" aria-live="polite"></div>
  <div id="urgent" class="unseen" role="alert"></div>
</body>`;
