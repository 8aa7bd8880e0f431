/** The folder where what Node compiled is kept. */
export const COMPILE_CACHE: string
/** For this process and those that it starts. */
export function keepCompiled(): void
