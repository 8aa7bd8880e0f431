/** Gets the content of Debian packages without installing them: downloads them from the sources of the host's apt and
 *  unpacks them into a folder. Needs no root. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { defined } from '../../../domain/defined.ts'
import { environment } from '../../../kit/sys/process.ts'
import { ProgramFailed, runProgram } from '../run-program.ts'
import { ImageUnavailable } from './recipe.ts'

const DOWNLOAD_TIMEOUT_MILLISECONDS = 300_000
const UPDATE_TIMEOUT_MILLISECONDS = 180_000

export interface PackageChoice {
  readonly names: readonly string[]
  /** Meta packages of the distribution's kernels. The first one that apt knows is used, and the kernel that it depends
   *  on is downloaded. No kernel when absent. */
  readonly kernels?: readonly string[]
}

/** Downloads the newest packages and unpacks them, one on top of the other, into `<folder>/root`; returns that path.
 *  ImageUnavailable when the host has no apt or cannot reach its mirror. */
export async function unpackPackages(choice: PackageChoice, folder: string): Promise<string> {
  const downloads = join(folder, 'packages')
  const root = join(folder, 'root')
  for (const path of [downloads, root, join(folder, 'lists', 'partial'), join(folder, 'cache', 'archives', 'partial')])
    await mkdir(path, { recursive: true })
  try {
    await download(choice, [], downloads).catch(async (error: unknown) => {
      if (error instanceof ProgramFailed && error.isMissing) throw error
      // Nobody has run `apt-get update` recently, so this uses separate package lists.
      const own = ['-o', `Dir::State::Lists=${join(folder, 'lists')}`, '-o', `Dir::Cache=${join(folder, 'cache')}`]
      await apt('apt-get', [...own, 'update'], folder, UPDATE_TIMEOUT_MILLISECONDS)
      await rm(downloads, { recursive: true })
      await mkdir(downloads)
      await download(choice, own, downloads)
    })
    for (const file of (await readdir(downloads)).filter((name) => name.endsWith('.deb')).sort()) {
      await runProgram('dpkg-deb', ['-x', join(downloads, file), root])
    }
    return root
  } catch (error) {
    const isMissing = error instanceof ProgramFailed && error.isMissing
    const what = isMissing
      ? 'it is built from Debian packages, which needs apt-get and dpkg-deb'
      : 'its Debian packages could not be had'
    throw new ImageUnavailable(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

async function download(choice: PackageChoice, options: readonly string[], downloads: string): Promise<void> {
  const kernel = choice.kernels === undefined ? [] : [await kernelPackage(choice.kernels, options, downloads)]
  await apt('apt-get', [...options, 'download', ...choice.names, ...kernel], downloads, DOWNLOAD_TIMEOUT_MILLISECONDS)
}

async function kernelPackage(
  candidates: readonly string[],
  options: readonly string[],
  folder: string,
): Promise<string> {
  for (const name of candidates) {
    const text = await apt('apt-cache', [...options, 'depends', name], folder).catch((error: unknown) => {
      if (error instanceof ProgramFailed && error.isMissing) throw error
      return ''
    })
    const real = /Depends: (linux-image-\d\S+)/.exec(text)?.[1]
    if (real !== undefined) return real
  }
  throw new ImageUnavailable(`apt knows none of ${candidates.join(', ')}`)
}

const apt = (
  program: 'apt-get' | 'apt-cache',
  input: readonly string[],
  folder: string,
  timeoutMilliseconds?: number,
): Promise<string> =>
  runProgram(program, ['-qq', '-o', 'APT::Sandbox::User=', ...input], {
    workingDirectory: folder,
    environment: { ...environment(), LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    ...defined({ timeoutMilliseconds }),
  })
