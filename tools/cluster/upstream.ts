/** Released programs of the Kubernetes and etcd projects, from a mirror instead of from source: a file is accepted only
 *  with the digest that `digests.json` has for it. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import { z } from 'zod'
import { TooLong } from '../../kit/http/bounded.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'

const run = promisify(execFile)

export const DIGESTS_FILE = join(import.meta.dirname, 'digests.json')

/** SHA-256 by the path of the file below the mirror: for linux on amd64 and arm64. */
const Digests = z.record(z.string(), z.string().regex(/^[0-9a-f]{64}$/))
export type Digests = z.infer<typeof Digests>

export interface UpstreamFile {
  /** Below the mirror, as `https://dl.k8s.io` has it for Kubernetes and `https://storage.googleapis.com` for etcd. */
  readonly path: string
  /** The program in the archive; undefined when the file is the program. */
  readonly member?: string | undefined
}

/** A mirror has the file, but it is not the pinned one. */
export class WrongDigest extends Error {
  constructor(path: string, found: string, pinned: string) {
    super(`the mirror's ${path} is not the released file: its SHA-256 is ${found}, and ${pinned} is pinned`)
    this.name = 'WrongDigest'
  }
}

const FILE_BYTES_MAXIMUM = 512 * 1024 ** 2
const [NOT_FOUND, FORBIDDEN] = [404, 403]

/** `architecture`: Node's name of it. */
export function releasedFile(
  program: { readonly name: string; readonly version: string },
  project: 'kubernetes' | 'etcd',
  architecture: string,
): UpstreamFile {
  const machine = architecture === 'x64' ? 'amd64' : architecture
  const { name, version } = program
  if (project === 'kubernetes') return { path: `${version}/bin/linux/${machine}/${name}` }
  const archive = `etcd-${version}-linux-${machine}`
  return { path: `etcd/${version}/${archive}.tar.gz`, member: `${archive}/${name}` }
}

/** Throws for a file that is not a table of digests. */
export const readDigests = async (file = DIGESTS_FILE): Promise<Digests> =>
  Digests.parse(JSON.parse(await readFile(file, 'utf8')))

/** Puts the program at `path`. Returns why it did not: the file has no digest here, or the mirror does not have it.
 *  Throws WrongDigest for a different file, TooLong, and errors of the network. */
export async function takeReleased(
  file: UpstreamFile,
  { mirror, digests, path }: { readonly mirror: string; readonly digests: Digests; readonly path: string },
): Promise<string | undefined> {
  const pinned = digests[file.path]
  if (pinned === undefined) return `${file.path} has no pinned digest`
  await mkdir(dirname(path), { recursive: true })
  const work = await mkdtemp(join(dirname(path), `.${basename(path)}-`))
  try {
    const downloaded = join(work, 'file')
    const found = await download(urlOf(mirror, file), downloaded)
    if (found === undefined) return `${mirror} does not have ${file.path}`
    if (found !== pinned) throw new WrongDigest(file.path, found, pinned)
    if (file.member !== undefined) await run('tar', ['-xzf', downloaded, '-C', work, '--no-same-owner', file.member])
    const program = file.member === undefined ? downloaded : join(work, file.member)
    await chmod(program, 0o755)
    await rename(program, path)
    return undefined
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Records the digests of the files of a trusted mirror. Returns the recorded paths. Throws WrongDigest, and records
 *  nothing, when a file differs from the pinned one. */
export async function pinReleased(
  files: readonly UpstreamFile[],
  { mirror, digestsFile = DIGESTS_FILE, work }: PinOptions,
): Promise<readonly string[]> {
  requireTrustworthy(mirror)
  const digests = await readDigests(digestsFile)
  const pinned: Record<string, string> = {}
  for (const path of new Set(files.map((file) => file.path))) {
    const found = await download(urlOf(mirror, { path }), join(work, 'pinned'))
    if (found === undefined) continue
    const known = digests[path]
    if (known !== undefined && known !== found) throw new WrongDigest(path, found, known)
    if (known === undefined) pinned[path] = found
  }
  await writeDurably(digestsFile, `${JSON.stringify({ ...digests, ...pinned }, undefined, 2)}\n`)
  return Object.keys(pinned)
}

export interface PinOptions {
  readonly mirror: string
  readonly digestsFile?: string
  /** A folder for what is downloaded. */
  readonly work: string
}

/** A digest is pinned permanently, so nobody on the way to the mirror may be able to change the file. */
function requireTrustworthy(mirror: string): void {
  const { protocol, hostname } = new URL(mirror)
  if (protocol !== 'https:' && !['127.0.0.1', '[::1]', 'localhost'].includes(hostname))
    throw new Error(`digests are pinned from a mirror over https only, and not from ${mirror}`)
}

const urlOf = (mirror: string, { path }: UpstreamFile): string => `${mirror.replace(/\/+$/, '')}/${path}`

/** Returns the digest of the downloaded file; undefined when the server does not have it. */
async function download(url: string, to: string): Promise<string | undefined> {
  const answer = await fetch(url)
  if (answer.status === NOT_FOUND || answer.status === FORBIDDEN) {
    await answer.body?.cancel()
    return undefined
  }
  if (!answer.ok || answer.body === null) throw new Error(`${url}: status ${answer.status}`)
  const out = createWriteStream(to)
  const digest = createHash('sha256')
  let length = 0
  for await (const bytes of answer.body) {
    length += bytes.length
    if (length > FILE_BYTES_MAXIMUM) throw new TooLong(FILE_BYTES_MAXIMUM)
    digest.update(bytes)
    if (!out.write(bytes)) await once(out, 'drain')
  }
  out.end()
  await finished(out)
  return digest.digest('hex')
}
