/** The folder of Node's compile cache. */
export const COMPILE_CACHE: string
/** For this process and those that it starts. */
export function keepCompiled(): void
