/** Custom images that are made, copied, used and deleted while everything is shaken, and what must hold of them
 *  afterwards. */
import { isDeepStrictEqual } from 'node:util'
import { type KubeObject, Secret } from '../../kit/kube/object.ts'
import { ApiError } from '../../kit/kube/store.ts'
import { accountNamespace, accountOfNamespace } from '../../resources/index.ts'
import { Backup } from '../../resources/backup/index.ts'
import { CustomImage, type CustomImageSpec, type CustomImageStatus } from '../../resources/custom-image/index.ts'
import { Image, imageName, type ImageSpec, type ImageStatus, nodeOf } from '../../resources/instance/index.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Snapshot } from '../../resources/snapshot/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { FILE, type ImageContent } from './image-contents.ts'
import { KEY, NODES, PLAN, ZONES } from './catalog.ts'
import type { Account, AnswerBody, Send } from './requests.ts'
import type { World } from './world.ts'

const HOSTNAMES = ['golden', 'copy']

type Made = (AnswerBody & { readonly custom_image?: { readonly id: string; readonly zone: string } }) | undefined

/** What an image is made of, and the least that it may hold then: all that was written before it was asked for. */
interface Source {
  readonly body: object
  readonly least?: { readonly volume: string; readonly content: number }
}

export function runImages(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler } = world
  const { random } = scheduler
  /** Zones of the images that an answer has named, by account and id. */
  const images = new Map<string, Map<string, string>>(accounts.map(({ id }) => [id, new Map()]))
  const remember = async (account: Account, answer: Promise<AnswerBody | undefined>): Promise<string | undefined> => {
    const made = (await answer) as Made // what is read of it
    if (made?.custom_image === undefined) return undefined
    images.get(account.id)?.set(made.custom_image.id, made.custom_image.zone)
    if (made.operation !== undefined && random.fraction() < 0.15) void cancelLater(account, made.operation.id)
    return made.custom_image.id
  }
  async function cancelLater(account: Account, operation: string): Promise<void> {
    await scheduler.pause(random.fraction() * 3_000)
    await send(account, 'POST', `/v1/operations/${operation}/cancel`)
  }
  async function make(account: Account): Promise<void> {
    const { body, least } = await drawSource(world, account)
    const id = await remember(account, send(account, 'POST', '/v1/custom-images', { title: 'Golden', ...body }))
    if (id !== undefined && least !== undefined) world.disks.images.least.set(`${account.id} ${id}`, least)
  }

  void scheduler.repeat({ least: 700, most: 5_000 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    if (account === undefined) return
    const [id, zone] = scheduler.pick([...(images.get(account.id) ?? [])]) ?? []
    const dice = random.fraction()
    if (id === undefined || dice < 0.3) void make(account)
    else if (dice < 0.45)
      void remember(account, send(account, 'POST', `/v1/custom-images/${id}/copy`, { zone: scheduler.pick(ZONES) }))
    else if (dice < 0.65)
      await send(account, 'POST', '/v1/servers', {
        zone,
        hostname: scheduler.pick(HOSTNAMES),
        plan: PLAN,
        custom_image_id: id,
        ssh_keys: [KEY],
      })
    else if (dice < 0.75) await send(account, 'PATCH', `/v1/custom-images/${id}`, { title: `Golden ${dice}` })
    else await send(account, 'DELETE', `/v1/custom-images/${id}`)
  })
}

/** A file, a snapshot, a backup, or a disk: of a stopped server, or of none. */
async function drawSource({ scheduler, admin, disks, backups: stores }: World, account: Account): Promise<Source> {
  const namespace = accountNamespace(account.id)
  const none = { items: [] }
  const { items: storages } = await admin.list(Storage, { namespace }).catch(() => none)
  const { items: snapshots } = await admin.list(Snapshot, { namespace }).catch(() => none)
  const { items: backups } = stores === undefined ? none : await admin.list(Backup, { namespace }).catch(() => none)
  const [storage, snapshot, backup] = [scheduler.pick(storages), scheduler.pick(snapshots), scheduler.pick(backups)]
  const dice = scheduler.random.fraction()
  const zoneOf = (storageId: string) => storages.find(({ metadata }) => metadata.name === storageId)?.spec.zone
  const zone = snapshot && zoneOf(snapshot.spec.storageId)
  if (snapshot !== undefined && zone !== undefined && dice < 0.35)
    return { body: { zone, source_snapshot_id: snapshot.metadata.name } }
  if (backup?.status?.zone !== undefined && dice < 0.6)
    return { body: { zone: backup.status.zone, source_backup_id: backup.metadata.name } }
  if (storage !== undefined && dice < 0.75) {
    const volume = storage.metadata.uid ?? ''
    const body = { zone: storage.spec.zone, source_storage_id: storage.metadata.name }
    return { body, least: { volume, content: disks.writtenTo(volume) } }
  }
  const isOther = dice > 0.95 ? { checksum_sha256: 'b'.repeat(64) } : {}
  return { body: { zone: scheduler.pick(ZONES), ...FILE, ...isOther } }
}

/** An image of a disk waits for hours until its server is stopped: whoever started that meanwhile stops it. */
export async function stopServersOfImages({ admin }: World): Promise<void> {
  const { items } = await admin.list(CustomImage)
  for (const { metadata, spec, status } of items) {
    const [{ namespace = '' }, { storageId }] = [metadata, spec.source]
    if (storageId === undefined || activeOperationOf({ spec, status }) === undefined) continue
    await stopServerOf(admin, { namespace, name: storageId })
  }
}

/** Stops the server that has a storage. It may have been deleted by the time that it is asked for. */
export async function stopServerOf(admin: World['admin'], storage: { namespace: string; name: string }): Promise<void> {
  const name = (await admin.get(Storage, storage))?.spec.serverId
  if (name === undefined) return
  const server = { namespace: storage.namespace, name }
  const isGone = (error: unknown): boolean => error instanceof ApiError && error.code === 404
  await admin.patch(Server, server, { spec: { desiredPower: 'stopped' } }).catch((error: unknown) => {
    if (!isGone(error)) throw error
  })
}

/** None is being made, none is on its way out, and every node of its zone holds what is online. */
export async function areImagesQuiet({ admin }: World): Promise<boolean> {
  const { items: custom } = await admin.list(CustomImage)
  const { items: held } = await admin.list(Image)
  const isHeld = (node: string, name: string): boolean =>
    held.some((one) => nodeOf(one) === node && one.metadata.name === name && one.status?.state === 'ready')
  return (
    [...custom, ...held].every(({ metadata }) => metadata.deletionTimestamp === undefined) &&
    custom.every(
      ({ metadata: { namespace = '', name }, spec, status }) =>
        activeOperationOf({ spec, status }) === undefined &&
        (status?.state !== 'online' ||
          NODES.filter(({ zone }) => zone === spec.zone).every((node) =>
            isHeld(node.name, imageName({ namespace, name })),
          )),
    )
  )
}

/** Hosts hold the images that there are and no others, and accounts have no quota for others either. */
export async function checkImages(world: World): Promise<string[]> {
  const { admin, hosts, db } = world
  const { items: custom } = await admin.list(CustomImage)
  const { items: held } = await admin.list(Image)
  const violations = custom.flatMap(({ metadata: { name }, status }) =>
    status?.state === 'online' || status?.state === 'error'
      ? []
      : [`custom image ${name} came to rest as ${status?.state}`],
  )
  const known = new Set(custom.map(({ metadata }) => metadata.uid))
  for (const { metadata, spec } of held)
    if (!known.has(spec.image.uid)) violations.push(`Image ${metadata.namespace}/${metadata.name} of no custom image`)
  for (const host of hosts)
    for (const name of host.images.keys())
      if (!held.some((one) => nodeOf(one) === host.name && one.metadata.name === name))
        violations.push(`image ${name} lies on ${host.name} for no custom image`)
  for (const { metadata } of (await admin.list(Secret)).items) {
    const [, uid] = /^image-(?:copy-)?(.+)$/.exec(metadata.name) ?? []
    const isNeeded = held.some(
      ({ metadata: { namespace }, spec }) => namespace === metadata.namespace && spec.image.uid === uid,
    )
    if (uid !== undefined && !isNeeded) violations.push(`Secret ${metadata.namespace}/${metadata.name} of no image`)
  }
  violations.push(...contentViolations(world, { custom, held, snapshots: (await admin.list(Snapshot)).items }))
  const holdings = await db.selectFrom('quota_holding').selectAll().where('name', '=', 'custom_images').execute()
  const amount = holdings.reduce((sum, holding) => sum + holding.amount, 0)
  const failed = custom.filter(({ status }) => status?.state === 'error').length
  if (amount > custom.length || amount < custom.length - failed)
    violations.push(`${amount} custom images are counted, and there are ${custom.length}`)
  return violations
}

interface Found {
  readonly custom: readonly KubeObject<CustomImageSpec, CustomImageStatus>[]
  readonly held: readonly KubeObject<ImageSpec, ImageStatus>[]
  readonly snapshots: readonly KubeObject[]
}

/** Each holds the same on all hosts, and what its source did: all that was written to the disk when it was asked for,
 *  exactly what the snapshot keeps, what the image holds that it is a copy of. */
function contentViolations({ disks, backups }: World, { custom, held, snapshots }: Found): string[] {
  const contentsOf = (uid: string | undefined): readonly ImageContent[] =>
    held
      .filter((one) => one.spec.image.uid === uid && one.status?.state === 'ready')
      .flatMap((one) => disks.images.of(nodeOf(one), one.metadata.name) ?? [])
  return custom.flatMap(({ metadata: { name, namespace = '', uid }, spec: { source } }) => {
    const contents = contentsOf(uid)
    const [first] = contents
    if (first === undefined) return []
    const least = disks.images.least.get(`${accountOfNamespace(namespace)} ${name}`)
    const original = custom.find((one) => one.metadata.namespace === namespace && one.metadata.name === source.imageId)
    const snapshot = snapshots.find(
      ({ metadata }) => metadata.namespace === namespace && metadata.name === source.snapshotId,
    )
    const point = snapshot && disks.pointOf(snapshot.metadata.uid ?? '')
    const [copied] = contentsOf(original?.metadata.uid)
    return [
      ...contents
        .filter((one) => !isDeepStrictEqual(one, first))
        .map((one) => `image ${name} holds ${line(first)} on one host and ${line(one)} on another`),
      // a restore puts something older on the disk
      ...(least !== undefined &&
      (first.volume !== least.volume || first.content < least.content) &&
      backups === undefined
        ? [`image ${name} shall hold at least ${line(least)}, and holds ${line(first)}`]
        : []),
      ...(point !== undefined && first.content !== point
        ? [`image ${name} is of a snapshot that keeps ${point}, and holds ${line(first)}`]
        : []),
      ...(copied !== undefined && !isDeepStrictEqual(copied, first)
        ? [`image ${name} is a copy of one that holds ${line(copied)}, and holds ${line(first)}`]
        : []),
    ]
  })
}

const line = ({ volume = 'no disk', content }: ImageContent): string => `${content} of ${volume}`
