/** The schema of the protocol, as the server prints it. */
export function readSchema(python?: string): unknown;

/** The text of src/protocol.ts. */
export function generate(schema: unknown): string;
