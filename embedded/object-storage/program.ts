/** Finds the engine of object storage. It is not an npm package: one command builds it, and every start finds the
 *  result. */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { environment } from '../../kit/sys/process.ts'
import { toolsFolder } from '../../kit/sys/tools-folder.ts'
import { isThere } from '../../kit/sys/is-there.ts'

const run = promisify(execFile)

export const ENGINE = 'versitygw'
export const ENGINE_VERSION = 'v1.8.0'
export const BUILD_COMMAND = 'npm run build:object-storage'
export const NO_ENGINE = `its engine is not built: ${BUILD_COMMAND}, and start again`

/** The named program, the built one, or one on the path, in this order; undefined without any. */
export async function findEngine(named = environment()['SVCCLOUD_VERSITYGW']): Promise<string | undefined> {
  if (named !== undefined) return (await isThere(named, constants.X_OK)) ? named : undefined
  const built = join(toolsFolder(), ENGINE_VERSION, ENGINE)
  if (await isThere(built, constants.X_OK)) return built
  return run('/bin/sh', ['-c', 'command -v "$1"', 'sh', ENGINE]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )
}
