/** The folder of programs that are built from source. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { environment } from './process.ts'

/** Each is in a folder named after its version. */
export const toolsFolder = (): string => environment()['SVCCLOUD_TOOLS'] ?? join(homedir(), '.cache', 'svccloud-tools')
