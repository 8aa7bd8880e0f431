/** Shared storage as a pool of a Ceph cluster, through the programs `ceph` and `rbd`. An image has its name only when
 *  it is complete. Until then it has another name, and the rename is atomic. */
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

/** How the host accesses the pool. */
export interface CephLogin {
  /** Paths of files for the programs of Ceph. */
  readonly configurationFile: string
  readonly keyringFile: string
  /** Without `client.`. */
  readonly user: string
  readonly pool: string
}

export interface CephPoolOptions extends CephLogin {
  /** Belongs to this agent only: holds the configuration of the cluster for programs of the host. */
  readonly folder: string
  readonly clock: Clock
  readonly random: Random
}

/** In bytes. */
export interface DiskExtent {
  readonly offset: number
  readonly length: number
}

export interface CephPool {
  readonly id: string
  /** The image's name for a guest's process. */
  pathOf(image: string): string
  /** The image's name for a program of the host. */
  programPathOf(image: string, snapshot?: string): string
  /** Undefined when the image does not exist. */
  inspect(image: string): Promise<{ readonly sizeGibibytes: number } | undefined>
  create(image: string, sizeGibibytes: number): Promise<void>
  /** Creates an image with the content of the snapshot, immediately. The two share all data that neither has written
   *  since. */
  clone(image: string, from: { readonly image: string; readonly snapshot: string }): Promise<void>
  /** The image and snapshot of the template for clones. The template is copied to the pool at its first use. */
  templateOf(image: TemplateImage & { readonly disk: string }): Promise<{ image: string; snapshot: string }>
  /** Removes the images of templates that share data with no clone and were not used for a week. A host that needs one
   *  later copies it again. Returns their names. */
  removeUnusedTemplates(): Promise<readonly string[]>
  /** Does nothing when the image is that large; never shrinks it. */
  grow(image: string, sizeGibibytes: number): Promise<void>
  /** Stores a note in the image. */
  note(image: string, text: string): Promise<void>
  noteOf(image: string): Promise<string | undefined>
  /** The host that owns the image, from the image itself. */
  ownerOf(image: string): Promise<VolumeOwner | undefined>
  /** False when the recorded owner is not the known one. Only one host changes it at a time. */
  changeOwner(image: string, known: VolumeOwner | undefined, next: VolumeOwner | undefined): Promise<boolean>
  rename(from: string, to: string): Promise<void>
  /** Names, oldest first; none when the image does not exist. */
  snapshots(image: string): Promise<readonly string[]>
  takeSnapshot(image: string, snapshot: string): Promise<void>
  removeSnapshot(image: string, snapshot: string): Promise<void>
  /** The extents that differ between two snapshots of the image, given in the order in which they were taken. */
  changed(image: string, since: string, snapshot: string): Promise<readonly DiskExtent[]>
  /** Bytes that only this snapshot keeps, by snapshot. These are in parts that were written before the snapshot and
   *  again after it. Undefined when the measurement would be too expensive. */
  roomBySnapshot(image: string): Promise<ReadonlyMap<string, number> | undefined>
  /** Gives every clone of the image, or of one snapshot, its own copy of the data. */
  separate(image: string, snapshot?: string): Promise<void>
  /** Removes the image with its snapshots; does nothing when it does not exist. Throws while somebody has it open. */
  remove(image: string): Promise<void>
  /** Addresses of clients on any host that have the image open and may write to it. */
  writers(image: string): Promise<readonly string[]>
}

/** The cluster does not answer, or refuses this host. */
export class CephUnreachable extends Error {
  constructor(options: ErrorOptions) {
    super('the Ceph cluster does not answer, or does not serve this host', options)
    this.name = 'CephUnreachable'
  }
}

const PROGRAM_MILLISECONDS = 60_000
/** Longer than a cluster needs to elect another monitor. */
const ANSWER_SECONDS = 20
const BYTES_PER_GIBIBYTE = 1024 ** 3
/** Features by which the cluster knows a single writer and can quickly report what an image holds. */
const IMAGE_FEATURES = 61
const NOTE = 'svccloud'
const OWNER = 'svccloud-owner'
const TEMPLATE_SNAPSHOT = 'base'
/** Key of the time when a clone was last created, as RFC 3339. */
const USED = 'svccloud-used'
const UNUSED_MILLISECONDS = 7 * 86_400_000
const TEMPLATE = /^template\.[^.]+\.[^.]+$/
/** Suffix of an image that is being removed; nothing is cloned from it. */
const LEAVING = '.leaving'
const LEAVING_TEMPLATE = /^template\..*\.leaving$/
/** Limit of the size of images whose snapshots are measured: a list of 250,000 objects for each snapshot. */
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
/** Another host has the lock. */
const isBusy = (error: unknown): boolean =>
  error instanceof ProgramFailed && /\(16\) Device or resource busy/.test(error.message)
/** Longer than a rename takes, and longer than a host takes for all attempts to get the lock. */
const LOCK_SECONDS = '60'
const LOCK_ATTEMPTS = 200

/** The result, or undefined when the object does not exist. */
const orMissing = <T>(asking: Promise<T>): Promise<T | undefined> =>
  asking.catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })

/** Configuration for clients of the cluster; later sections override earlier ones. */
const configurationFor = (text: string, user: string, lines: readonly string[]): string =>
  `${text.trimEnd()}\n\n[client.${user}]\n${lines.map((line) => `${line}\n`).join('')}`

/** The files for a guest's process, by their names in its folder. They are read for each guest, so that keys may
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

/** Throws when the settings are invalid. */
export function requireCephLogin({ user, pool }: CephLogin): void {
  if (!CEPH_NAME.test(user) || CLIENTS.test(user)) throw new Error(`${user} is no name of a client of Ceph`)
  if (!CEPH_NAME.test(pool) || pool.length > POOL_CHARACTERS_MAXIMUM)
    throw new Error(`${pool} is no name of a pool, or longer than ${POOL_CHARACTERS_MAXIMUM} characters`)
}

/** Throws CephUnreachable when the cluster does not answer, and file system errors when a file of the settings cannot
 *  be read. */
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
      // A guest waits for its cluster; a program of the host does not.
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
  await run('rbd', ['ls', pool]).catch(unreachable) // fails here on a fenced host
  return new CephImages(`${cluster}.${pool}`, { pool, user, configuration, run, clock, random })
}

interface Client {
  readonly pool: string
  readonly user: string
  /** Configuration file for programs of the host. */
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
    // If two hosts rename to one name at the same time, both succeed and one of the images is lost.
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

  /** Renames an unused template. A clone that is created meanwhile does not find the template, and is created again. */
  async #withdrawUnused(image: string): Promise<boolean> {
    const usedAt = (await orMissing(this.#rbd('image-meta', 'get', this.#of(image), USED)))?.trim()
    if (usedAt === undefined) {
      await orMissing(this.#noteUse(image)) // its week starts now
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

  /** Does the work while no other host works on the name. The lock of a host that dies expires by itself. */
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

  async changed(image: string, since: string, snapshot: string): Promise<readonly DiskExtent[]> {
    return Extents.parse(await this.#ask('diff', '--from-snap', since, this.#of(image, snapshot)))
  }

  async roomBySnapshot(image: string): Promise<ReadonlyMap<string, number> | undefined> {
    const [snapshots, size] = [await this.snapshots(image), await this.inspect(image)]
    if (size === undefined || snapshots.length > ROOM_SNAPSHOTS_MAXIMUM || size.sizeGibibytes > ROOM_GIBIBYTES_MAXIMUM)
      return undefined
    const room = new Map<string, number>()
    const writtenUpTo = async (index: number): Promise<readonly DiskExtent[]> => {
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
        // it may be removed meanwhile, or have its own copy
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

  /** Clones that share data with it, as program arguments. */
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
