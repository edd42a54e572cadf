/**
 * A method of the protocol: its name, and in its type what goes there and what comes back.
 *
 * The language client has such classes, too, but it is large and loaded only when it is needed.
 */

export class RequestType<P, R> {
  declare protected readonly types: (params: P) => R;

  constructor(readonly method: string) {}
}

export class NotificationType<P> {
  declare protected readonly types: (params: P) => void;

  constructor(readonly method: string) {}
}
