/** The server's JSON Schema of a configuration file. */
export function readSchema(python?: string): object;
/** The same as a setting of VS Code. */
export function settingsSchema(schema: object): { properties: Record<string, unknown>; additionalProperties: boolean };
