/** Files dropped on the view; VS Code lets them through to it while Shift is held. */

/** Take what is dropped anywhere on the page, as URIs. */
export function acceptDrops(take: (uris: string[]) => void): void {
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer === null ? [] : droppedUris(event.dataTransfer));
  });
}

/** VS Code says its files in a list of its own; what others drag is in the usual one. */
export function droppedUris(data: Pick<DataTransfer, "getData">): string[] {
  const lists = ["application/vnd.code.uri-list", "text/uri-list"].map((type) => data.getData(type));
  const list = lists.find((text) => text !== "") ?? "";
  return list.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith("#"));
}
