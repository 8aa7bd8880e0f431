/** Layers of images, as tar archives with the same bytes for the same content: programs of this machine with their
 *  libraries, and the sources with their dependencies. */
import { execFile } from 'node:child_process'
import { access, chmod, copyFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { nodeBinary } from '../../kit/sys/process.ts'
import type { Stage } from './dockerfile.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const LAYER_BYTES_MAXIMUM = 2 * 1024 ** 3
/** In addition to the C library itself, for dependencies with native code. */
const LIBC = ['librt.so.1', 'libresolv.so.2', 'libutil.so.1']
/** A shell, and the programs that charts call. */
const BASE_PROGRAMS = ['sh', 'cat', 'chown', 'mkdir', 'ls']
const BASE_FILES: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\n',
  'etc/group': 'root:x:0:\n',
  'etc/nsswitch.conf': 'hosts: files dns\n',
}

/** Archives the paths of a folder; its owner is root. */
async function archive(folder: string, paths: readonly string[], ...more: readonly string[]): Promise<Buffer> {
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=go+rX']
  const { stdout } = await run('tar', [...same, ...more, '-C', folder, '-cf', '-', ...paths], {
    encoding: 'buffer',
    maxBuffer: LAYER_BYTES_MAXIMUM,
  })
  return stdout
}

/** The layer of the tree that `fill` creates in an empty folder. */
async function layerOf(fill: (folder: string) => Promise<void>): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-layer-'))
  try {
    await fill(folder)
    return await archive(folder, ['.'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A system that runs Node and those programs, by name or by path, and nothing else. */
export const baseLayer = (more: readonly string[] = []): Promise<Buffer> =>
  layerOf(async (folder) => {
    for (const name of ['tmp', 'usr/local/bin', 'bin', 'root']) await mkdir(join(folder, name), { recursive: true })
    await chmod(join(folder, 'tmp'), 0o1777)
    for (const [path, content] of Object.entries(BASE_FILES)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), content)
    }
    const node = nodeBinary()
    await copyFile(node, join(folder, 'usr/local/bin/node'))
    await putLibraries(folder, node)
    const [libc = ''] = (await librariesOf(node)).filter((path) => path.includes('/libc.so'))
    for (const name of LIBC) await copyFile(join(dirname(libc), name), join(folder, dirname(libc), name))
    for (const name of [...BASE_PROGRAMS, ...more]) {
      const path = (await run('which', [name])).stdout.trim()
      await copyFile(path, join(folder, 'bin', basename(name)))
      await putLibraries(folder, path)
    }
  })

/** The libraries that the loader of this machine finds for it, with their paths. */
const librariesOf = async (program: string): Promise<readonly string[]> =>
  [...(await run('ldd', [program])).stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)

async function putLibraries(folder: string, program: string, isWanted = (_path: string) => true): Promise<void> {
  for (const path of (await librariesOf(program)).filter(isWanted)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await copyFile(path, join(folder, path))
  }
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>
}

/** Paths of the repository unchanged, below another folder; links keep their targets. */
const below = ({ WorkingDir }: Stage['config']): string => `--transform=flags=rSH;s,^,${WorkingDir.slice(1)}/,`

/** The dependencies that are not for development, as they are installed here. */
export async function dependenciesLayer({ leftOut, config }: Stage): Promise<Buffer> {
  // as npm writes it
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock
  const needed = Object.entries(packages).flatMap(([path, { dev = false, link = false }]) =>
    // Nested dependencies come with their parent.
    dev || link || path.lastIndexOf('node_modules/') !== 0 ? [] : [path],
  )
  const installed = await Promise.all(
    needed.map((path) =>
      access(join(ROOT, path)).then(
        () => [path],
        () => [], // for another kind of machine
      ),
    ),
  )
  return archive(ROOT, installed.flat(), '--anchored', ...leftOut.map((path) => `--exclude=${path}`), below(config))
}

/** The files that the stage copies. */
export const sourcesLayer = ({ copies, config }: Stage): Promise<Buffer> => archive(ROOT, copies, below(config))

/** A folder of this machine with the libraries that its programs load from elsewhere, and additional files. */
export const folderLayer = (
  from: string,
  to: string,
  { programs, files }: { readonly programs: readonly string[]; readonly files: Readonly<Record<string, string>> },
): Promise<Buffer> =>
  layerOf(async (folder) => {
    await cp(from, join(folder, to), { recursive: true, verbatimSymlinks: true })
    // Its own libraries come with it.
    for (const program of programs)
      await putLibraries(folder, program, (path) => !path.startsWith(from) && !path.includes('/../'))
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), content, { mode: 0o755 })
    }
  })
