/** The portal of `npm start`: built beside the start of the others, whenever its sources have changed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { environment, nodeBinary } from '../kit/sys/process.ts'
import { BUILT, builtDigest, inputsDigest } from '../portal/build/stamp.ts'

const run = promisify(execFile)
const PORTAL = join(import.meta.dirname, '../portal')

/** The folder of the built portal, or why there is none, for people. */
export type PortalDecision = { readonly directory: string } | { readonly obstacle: string }

const TOOLS_MISSING = 'its packages are not installed: npm ci, and another start'
const STOPPED: PortalDecision = { obstacle: 'the start was stopped' }
const BUILD_MILLISECONDS_MAXIMUM = 180_000

export interface PortalNeeds {
  /** Prints one line for people. */
  readonly print: (line: string) => void
  /** Ends a build. */
  readonly signal: AbortSignal
  /** Gets what a failed build printed. */
  readonly logFile: string
}

/** Builds the portal when it is not built from these sources. Rejects only when nothing can be written. */
export async function preparePortal({ print, signal, logFile }: PortalNeeds): Promise<PortalDecision> {
  if ((await builtDigest(BUILT)) === (await inputsDigest())) return { directory: BUILT }
  if (!(await arePackagesInstalled(PORTAL))) return { obstacle: TOOLS_MISSING }
  if (signal.aborted) return STOPPED
  print('Building the portal, whose sources have changed since the last build ...')
  try {
    await run(nodeBinary(), [join(PORTAL, 'build/main.ts')], {
      env: { ...environment(), NO_COLOR: '1' },
      timeout: BUILD_MILLISECONDS_MAXIMUM,
      signal,
    })
    return { directory: BUILT }
  } catch (error) {
    if (signal.aborted) return STOPPED
    const printed = error instanceof Error && 'stderr' in error ? `${String(error.stderr)}\n` : ''
    await writeFile(logFile, `${printed}${String(error)}\n`)
    return { obstacle: `it could not be built: ${logFile}` }
  }
}

/** Whether every package that the folder's `package.json` names is there: an installation that was interrupted has some
 *  of them. */
export async function arePackagesInstalled(folder: string): Promise<boolean> {
  const manifest = join(folder, 'package.json')
  const { devDependencies } = JSON.parse(await readFile(manifest, 'utf8')) as { devDependencies: object } // our own
  const places = createRequire(manifest).resolve.paths('any') ?? []
  return Object.keys(devDependencies).every((name) =>
    places.some((place) => existsSync(join(place, name, 'package.json'))),
  )
}
