/** The process that fetches one file. It reads a FetchRequest from the first line of its input, and writes the body to
 *  descriptor 3 and its FetchResult to its output. It exits with its parent. */
import { becomeUser, exitProcess, isRoot, readFirstLine, writeOut } from '../../../../kit/sys/process.ts'
import { type FetchRequest, fetchTo } from './fetch.ts'
import { NOBODY } from './sandbox.ts'

const BODY_DESCRIPTOR = 3

if (isRoot()) becomeUser(NOBODY, NOBODY)
const line = await readFirstLine(() => exitProcess(1))
const request: FetchRequest = JSON.parse(line)
await writeOut(JSON.stringify(await fetchTo(BODY_DESCRIPTOR, request)))
exitProcess(0)
