/** Shared storage as a pool of a Ceph cluster, by the programs `ceph` and `rbd`. An image is there under its name when
 *  it is complete: what is being made has another name until then, and a rename is one change. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { defined } from '../../../../domain/defined.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { newUuid, type Random } from '../../../../kit/sys/random.ts'
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { TemplateImage } from '../../images/recipe.ts'
import { ProgramFailed, runProgram } from '../../run-program.ts'
import { COPY_TIMEOUT_MILLISECONDS, flattenDisk } from './copy-disk.ts'
import { CEPH_NAME, rbdPath, rbdProgramPath } from './rbd-path.ts'
import type { VolumeOwner } from './volume-store.ts'

/** As whom the host reaches which pool. */
export interface CephLogin {
  /** Files as the programs of Ceph take them. */
  readonly configurationFile: string
  readonly keyringFile: string
  /** Without `client.`. */
  readonly user: string
  readonly pool: string
}

export interface CephPoolOptions extends CephLogin {
  /** Of this agent alone: holds what programs of the host are told of the cluster. */
  readonly folder: string
  readonly clock: Clock
  readonly random: Random
}

/** In bytes. */
export interface Extent {
  readonly offset: number
  readonly length: number
}

export interface CephPool {
  readonly id: string
  /** How the image is named to a guest. */
  pathOf(image: string): string
  /** The same for a program of the host. */
  programPathOf(image: string, snapshot?: string): string
  /** Undefined when there is none of the name. */
  inspect(image: string): Promise<{ readonly sizeGibibytes: number } | undefined>
  create(image: string, sizeGibibytes: number): Promise<void>
  /** An image that holds what the snapshot does, at once: it shares what neither has written since. */
  clone(image: string, from: { readonly image: string; readonly snapshot: string }): Promise<void>
  /** The template as an image that clones begin from; it is copied there at the first use. */
  templateOf(image: TemplateImage & { readonly disk: string }): Promise<{ image: string; snapshot: string }>
  /** Removes the images of templates that no clone shares data with and that nothing has begun as for a week. Whoever
   *  needs one then copies it there again. Answers their names. */
  removeUnusedTemplates(): Promise<readonly string[]>
  /** Free when it is that large; never smaller. */
  grow(image: string, sizeGibibytes: number): Promise<void>
  /** Notes something of the image in it. */
  note(image: string, text: string): Promise<void>
  noteOf(image: string): Promise<string | undefined>
  /** The host that has it, as the image itself says. */
  ownerOf(image: string): Promise<VolumeOwner | undefined>
  /** False when another owner than the known one stands there. One host changes it at a time. */
  changeOwner(image: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean>
  rename(from: string, to: string): Promise<void>
  /** Names, oldest first; none when there is no such image. */
  snapshots(image: string): Promise<readonly string[]>
  takeSnapshot(image: string, snapshot: string): Promise<void>
  removeSnapshot(image: string, snapshot: string): Promise<void>
  /** What differs between two snapshots of the image, in the order in which they were taken. */
  changed(image: string, since: string, snapshot: string): Promise<readonly Extent[]>
  /** Bytes of the image that each of its snapshots alone keeps, by name: of parts that were written before it and after
   *  it, so that nothing else shares them. Undefined when that would be too much to ask. */
  roomBySnapshot(image: string): Promise<ReadonlyMap<string, number> | undefined>
  /** Gives whatever shares data with the image, or with the one snapshot, a copy of its own. */
  separate(image: string, snapshot?: string): Promise<void>
  /** With all that is in it; free when it is not there. Throws while somebody has it open. */
  remove(image: string): Promise<void>
  /** Addresses of those who have the image open and may write to it, on whatever host. */
  writers(image: string): Promise<readonly string[]>
}

/** It does not answer, or not to this host. */
export class CephUnreachable extends Error {
  constructor(options: ErrorOptions) {
    super('the Ceph cluster does not answer, or does not serve this host', options)
    this.name = 'CephUnreachable'
  }
}

const PROGRAM_MILLISECONDS = 60_000
/** Longer than a cluster that loses a monitor takes to agree on another. */
const ANSWER_SECONDS = 20
const BYTES_PER_GIBIBYTE = 1024 ** 3
/** So that the cluster knows one writer, and can tell quickly what an image holds. */
const IMAGE_FEATURES = 61
const NOTE = 'svccloud'
const OWNER = 'svccloud-owner'
const TEMPLATE_SNAPSHOT = 'base'
/** When a clone was begun last, as RFC 3339. */
const USED = 'svccloud-used'
const UNUSED_MILLISECONDS = 7 * 86_400_000
const TEMPLATE = /^template\.[^.]+\.[^.]+$/
/** Being removed: nothing begins as it. */
const LEAVING = '.leaving'
const LEAVING_TEMPLATE = /^template\..*\.leaving$/
/** Of images whose snapshots are measured: a list of a quarter of a million objects for each snapshot. */
const ROOM_GIBIBYTES_MAXIMUM = 1_024
const ROOM_SNAPSHOTS_MAXIMUM = 32
const PROGRAM_CONFIGURATION = 'ceph.conf'
const POOL_CHARACTERS_MAXIMUM = 26
const CLIENTS = /^client\./

const Information = z.looseObject({ size: z.number() })
const Extents = z.array(z.looseObject({ offset: z.int(), length: z.int() }))
const Owner = z.object({ node: z.string(), bootId: z.string() })
const Names = z.array(z.string())
const Snapshots = z.array(z.looseObject({ name: z.string() }))
const Children = z.array(z.looseObject({ pool: z.string(), image: z.string(), trash: z.boolean().default(false) }))
const Status = z.looseObject({ watchers: z.array(z.looseObject({ address: z.string() })).default([]) })

const isMissing = (error: unknown): boolean =>
  error instanceof ProgramFailed && /\(2\) No such file or directory/.test(error.message)
/** Others have the lock. */
const isBusy = (error: unknown): boolean =>
  error instanceof ProgramFailed && /\(16\) Device or resource busy/.test(error.message)
/** Longer than a rename takes, and than a host needs that asks for the lock so often. */
const LOCK_SECONDS = '60'
const LOCK_ATTEMPTS = 200

/** The answer, or undefined when there is nothing of the name. */
const orMissing = <T>(asking: Promise<T>): Promise<T | undefined> =>
  asking.catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })

/** What clients are told of the cluster; later sections win. */
const configurationFor = (text: string, user: string, lines: readonly string[]): string =>
  `${text.trimEnd()}\n\n[client.${user}]\n${lines.map((line) => `${line}\n`).join('')}`

/** The files that a guest's process is given, by their names in its folder. Read anew for each guest, so that keys may
 *  change. */
export async function guestCephFiles(
  { configurationFile, keyringFile, user }: CephLogin,
  names: { readonly configuration: string; readonly keyring: string },
): Promise<Readonly<Record<string, string>>> {
  const [configuration, keyring] = await Promise.all([
    readFile(configurationFile, 'utf8'),
    readFile(keyringFile, 'utf8'),
  ])
  return {
    [names.configuration]: configurationFor(configuration, user, [`keyring = ${names.keyring}`]),
    [names.keyring]: keyring,
  }
}

/** Throws what is wrong with the settings. */
export function requireCephLogin({ user, pool }: CephLogin): void {
  if (!CEPH_NAME.test(user) || CLIENTS.test(user)) throw new Error(`${user} is no name of a client of Ceph`)
  if (!CEPH_NAME.test(pool) || pool.length > POOL_CHARACTERS_MAXIMUM)
    throw new Error(`${pool} is no name of a pool, or longer than ${POOL_CHARACTERS_MAXIMUM} characters`)
}

/** Throws CephUnreachable when it does not answer, and what the file system says when a file of the settings cannot be
 *  read. */
export async function openCephPool(options: CephPoolOptions): Promise<CephPool> {
  const { configurationFile, keyringFile, user, pool, folder, clock, random } = options
  requireCephLogin(options)
  await readFile(keyringFile)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const configuration = join(folder, PROGRAM_CONFIGURATION)
  await writeFile(
    configuration,
    configurationFor(await readFile(configurationFile, 'utf8'), user, [
      `keyring = ${keyringFile}`,
      `rbd default features = ${IMAGE_FEATURES}`,
      'rbd default clone format = 2',
      // A guest waits for its cluster, a program of the host does not.
      `client mount timeout = ${ANSWER_SECONDS}`,
      `rados mon op timeout = ${ANSWER_SECONDS}`,
      `rados osd op timeout = ${ANSWER_SECONDS}`,
    ]),
    { mode: 0o600 },
  )
  const run = (
    program: 'ceph' | 'rbd' | 'rados',
    words: readonly string[],
    timeoutMilliseconds = PROGRAM_MILLISECONDS,
  ) => runProgram(program, ['--conf', configuration, '--id', user, ...words], { timeoutMilliseconds })
  const unreachable = (cause: unknown): never => {
    throw cause instanceof ProgramFailed && !cause.isMissing ? new CephUnreachable({ cause }) : cause
  }
  const cluster = (await run('ceph', ['fsid']).catch(unreachable)).trim()
  await run('rbd', ['ls', pool]).catch(unreachable) // a host that is fenced is refused here
  return new CephImages(`${cluster}.${pool}`, { pool, user, configuration, run, clock, random })
}

interface Client {
  readonly pool: string
  readonly user: string
  /** File that programs of the host are given. */
  readonly configuration: string
  readonly run: (program: 'rbd' | 'rados', words: readonly string[], timeoutMilliseconds?: number) => Promise<string>
  readonly clock: Clock
  readonly random: Random
}

class CephImages implements CephPool {
  readonly id: string
  readonly #client: Client

  constructor(id: string, client: Client) {
    this.id = id
    this.#client = client
  }

  pathOf(image: string): string {
    const { pool, user } = this.#client
    return rbdPath({ pool, image, user })
  }

  programPathOf(image: string, snapshot?: string): string {
    const { pool, user, configuration } = this.#client
    return rbdProgramPath({ pool, image, user }, { configuration, ...defined({ snapshot }) })
  }

  async inspect(image: string): Promise<{ readonly sizeGibibytes: number } | undefined> {
    const found = await orMissing(this.#ask('info', this.#of(image)))
    return found === undefined
      ? undefined
      : { sizeGibibytes: Math.floor(Information.parse(found).size / BYTES_PER_GIBIBYTE) }
  }

  async create(image: string, sizeGibibytes: number): Promise<void> {
    await this.#rbd('create', '--size', `${sizeGibibytes}G`, this.#of(image))
  }

  async clone(image: string, from: { readonly image: string; readonly snapshot: string }): Promise<void> {
    await this.#rbd('clone', this.#of(from.image, from.snapshot), this.#of(image))
  }

  async templateOf({ name, version, disk }: TemplateImage & { readonly disk: string }) {
    const found = { image: `template.${name}.${version}`, snapshot: TEMPLATE_SNAPSHOT }
    if ((await this.inspect(found.image)) !== undefined) {
      await this.#noteUse(found.image)
      return found
    }
    const draft = `${found.image}.${newUuid(this.#client.random)}`
    await flattenDisk(disk, { to: this.programPathOf(draft) })
    await this.takeSnapshot(draft, TEMPLATE_SNAPSHOT)
    await this.#noteUse(draft)
    // Two renames to one name at the same time both succeed, and one of the images is lost.
    const isFirst = await this.#alone(found.image, async () => {
      if ((await this.inspect(found.image)) !== undefined) return false
      await this.rename(draft, found.image)
      return true
    })
    if (!isFirst) await this.remove(draft)
    return found
  }

  async removeUnusedTemplates(): Promise<readonly string[]> {
    const images = Names.parse(await this.#ask('ls', this.#client.pool))
    for (const image of images.filter((name) => LEAVING_TEMPLATE.test(name))) await this.remove(image)
    const removed: string[] = []
    for (const image of images.filter((name) => TEMPLATE.test(name)))
      if (await this.#alone(image, () => this.#withdrawUnused(image))) {
        await this.remove(`${image}${LEAVING}`)
        removed.push(image)
      }
    return removed
  }

  /** A clone that is begun meanwhile finds the template no more, and is begun anew. */
  async #withdrawUnused(image: string): Promise<boolean> {
    const usedAt = (await orMissing(this.#rbd('image-meta', 'get', this.#of(image), USED)))?.trim()
    if (usedAt === undefined) {
      await orMissing(this.#noteUse(image)) // from now on it counts
      return false
    }
    const isOld = this.#client.clock.now().getTime() - Date.parse(usedAt) > UNUSED_MILLISECONDS
    if (!isOld || (await this.#childrenOf(image, undefined)).length > 0) return false
    await this.rename(image, `${image}${LEAVING}`)
    return true
  }

  async #noteUse(image: string): Promise<void> {
    await this.#rbd('image-meta', 'set', this.#of(image), USED, this.#client.clock.now().toISOString())
  }

  /** One host after the other does the work on the name. A host that dies at it lets go by itself. */
  async #alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    const { pool, random } = this.#client
    const object = `svccloud.${name}.lock`
    const take = ['lock', 'get', object, 'name', '--lock-duration', LOCK_SECONDS, '--lock-cookie', newUuid(random)]
    for (let attempts = LOCK_ATTEMPTS; ; attempts--) {
      const refusal = await this.#client.run('rados', ['--pool', pool, ...take]).then(
        () => undefined,
        (error: unknown) => ({ error }),
      )
      if (refusal === undefined) break
      if (attempts === 1 || !isBusy(refusal.error)) throw refusal.error
    }
    try {
      return await work()
    } finally {
      await this.#client.run('rados', ['--pool', pool, 'rm', object])
    }
  }

  async grow(image: string, sizeGibibytes: number): Promise<void> {
    const known = await this.inspect(image)
    if (known === undefined || known.sizeGibibytes >= sizeGibibytes) return
    await this.#rbd('resize', '--no-progress', '--size', `${sizeGibibytes}G`, this.#of(image))
  }

  async note(image: string, text: string): Promise<void> {
    await this.#rbd('image-meta', 'set', this.#of(image), NOTE, text)
  }

  async noteOf(image: string): Promise<string | undefined> {
    return (await orMissing(this.#rbd('image-meta', 'get', this.#of(image), NOTE)))?.trimEnd()
  }

  async ownerOf(image: string): Promise<VolumeOwner | undefined> {
    const text = await orMissing(this.#rbd('image-meta', 'get', this.#of(image), OWNER))
    return text === undefined ? undefined : Owner.parse(JSON.parse(text))
  }

  changeOwner(image: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean> {
    return this.#alone(`owner.${image}`, async () => {
      if (!isDeepStrictEqual(await this.ownerOf(image), known)) return false
      if (next !== undefined) await this.#rbd('image-meta', 'set', this.#of(image), OWNER, JSON.stringify(next))
      else if (known !== undefined) await this.#rbd('image-meta', 'remove', this.#of(image), OWNER)
      return true
    })
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#rbd('rename', this.#of(from), this.#of(to))
  }

  async snapshots(image: string): Promise<readonly string[]> {
    return Snapshots.parse((await orMissing(this.#ask('snap', 'ls', this.#of(image)))) ?? []).map(({ name }) => name)
  }

  async takeSnapshot(image: string, snapshot: string): Promise<void> {
    await this.#rbd('snap', 'create', '--no-progress', this.#of(image, snapshot))
  }

  async removeSnapshot(image: string, snapshot: string): Promise<void> {
    await this.#rbd('snap', 'rm', '--no-progress', this.#of(image, snapshot))
  }

  async changed(image: string, since: string, snapshot: string): Promise<readonly Extent[]> {
    return Extents.parse(await this.#ask('diff', '--from-snap', since, this.#of(image, snapshot)))
  }

  async roomBySnapshot(image: string): Promise<ReadonlyMap<string, number> | undefined> {
    const [snapshots, size] = [await this.snapshots(image), await this.inspect(image)]
    if (size === undefined || snapshots.length > ROOM_SNAPSHOTS_MAXIMUM || size.sizeGibibytes > ROOM_GIBIBYTES_MAXIMUM)
      return undefined
    const room = new Map<string, number>()
    const writtenUpTo = async (index: number): Promise<readonly Extent[]> => {
      const since = index === 0 ? [] : ['--from-snap', snapshots[index - 1] ?? '']
      return Extents.parse(await this.#ask('diff', '--whole-object', ...since, this.#of(image, snapshots[index])))
    }
    let before = await writtenUpTo(0)
    for (const [index, snapshot] of snapshots.entries()) {
      const after = await writtenUpTo(index + 1)
      const rewritten = new Set(after.map(({ offset }) => offset))
      const alone = before.filter(({ offset }) => rewritten.has(offset))
      room.set(
        snapshot,
        alone.reduce((sum, { length }) => sum + length, 0),
      )
      before = after
    }
    return room
  }

  async separate(image: string, snapshot?: string): Promise<void> {
    for (const child of await this.#childrenOf(image, snapshot))
      await this.#client.run('rbd', ['flatten', '--no-progress', child], COPY_TIMEOUT_MILLISECONDS).catch(
        // it may have gone meanwhile, or have a copy of its own
        async (cause: unknown) => {
          if ((await this.#childrenOf(image, snapshot)).includes(child)) throw cause
        },
      )
  }

  async remove(image: string): Promise<void> {
    if ((await this.inspect(image)) === undefined) return
    const writers = await this.writers(image)
    if (writers.length > 0) throw new Unavailable(`image ${image}, which ${writers.join(' and ')} has open`, undefined)
    await this.separate(image)
    await this.#rbd('snap', 'purge', '--no-progress', this.#of(image))
    await this.#client.run('rbd', ['rm', '--no-progress', this.#of(image)], COPY_TIMEOUT_MILLISECONDS)
  }

  async writers(image: string): Promise<readonly string[]> {
    const found = await orMissing(this.#ask('status', this.#of(image)))
    return found === undefined ? [] : Status.parse(found).watchers.map(({ address }) => address)
  }

  /** What shares data with it, as programs name images. */
  async #childrenOf(image: string, snapshot: string | undefined): Promise<readonly string[]> {
    const found = await orMissing(this.#ask('children', '--all', this.#of(image, snapshot)))
    return Children.parse(found ?? [])
      .filter(({ trash }) => !trash)
      .map((child) => `${child.pool}/${child.image}`)
  }

  #of(image: string, snapshot?: string): string {
    return `${this.#client.pool}/${image}${snapshot === undefined ? '' : `@${snapshot}`}`
  }

  #rbd(...words: readonly string[]): Promise<string> {
    return this.#client.run('rbd', words)
  }

  async #ask(...words: readonly string[]): Promise<unknown> {
    return JSON.parse(await this.#rbd(...words, '--format', 'json'))
  }
}
