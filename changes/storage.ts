/** The changes of a storage. */
import { defined } from '../domain/defined.ts'
import { badField, forbidden, notFound, type Problem, unavailable } from '../domain/problem.ts'
import {
  requireAttachable,
  requireDeletableStorage,
  requireDetachable,
  requireResizable,
  requireDiskSize,
} from '../domain/storage/rules.ts'
import { isHiddenMachineId } from '../domain/managed-machine/rules.ts'
import { findServerClaims } from '../db/server/index.ts'
import {
  attachStorage,
  claimStorage,
  deleteStorageClaim,
  holdSize,
  requireEndable,
  withdrawAttachment,
  withdrawResize,
} from '../db/storage/index.ts'
import type { BodyOf } from '../kit/http/route.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { accountNamespace } from '../resources/index.ts'
import { clonedFrom } from '../resources/operation/index.ts'
import { isHostUnreachable, Server, type ServerSpec, type ServerStatus } from '../resources/server/index.ts'
import { Labels, Printable } from '../resources/kit/shapes.ts'
import * as routes from '../resources/storage/index.ts'
import { Storage, storageFactsOf, type StorageSource, type StorageSpec } from '../resources/storage/index.ts'
import { requireCopyZone, requireReadableSchedule, requireScheduleZone } from './kit/backups.ts'
import { changesOf, fromBody, type Patch, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { placeOfSource, resolveSource, SOURCE_READS } from './kit/source.ts'
import { requireOpenZone } from './kit/zone.ts'
import { worldOf } from './kit/world.ts'

const storageOf = ({ accountId, id }: Target) => ({ accountId, storageId: id })

/** Refuses a change that only operators or the platform make. */
const refusing = (problem: () => Problem) => ({
  action: 'update',
  allow() {
    throw problem()
  },
})

type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** Throws 404 for a machine of the platform, 400 for a server of another zone, and 503 while its host does not
 *  answer. */
function requireServer(server: ServerObject, zone: string): void {
  const { name } = server.metadata
  if (isHiddenMachineId(name)) throw notFound('server')
  if (server.spec.zone !== zone)
    throw badField('serverId', `the server is in zone ${server.spec.zone}, the storage in zone ${zone}`)
  if (isHostUnreachable(server.status))
    throw unavailable('host_unreachable', 'The host of the server does not answer. Try again when it is back.', {
      resource: { type: 'server', id: name },
    })
}

/** The source that a request names. Throws 400 for more than one. */
function sourceOf(
  body: Pick<routes.CreateStorage, 'source_backup_id' | 'source_snapshot_id' | 'source_storage_id'>,
): StorageSource | undefined {
  const [first, second] = (['backup', 'snapshot', 'storage'] as const).flatMap((kind) => {
    const id = body[`source_${kind}_id`]
    return id === undefined || id === null ? [] : [{ kind, id }]
  })
  if (second !== undefined) throw badField(`source_${second.kind}_id`, 'a storage is made from one source only')
  return first
}

export const storageChanges = changesOf(Storage, {
  name: 'storage',
  title: 'storage',
  finalizedWhen: 'nothing of the storage is left on any host',
  factsOf: storageFactsOf,
  refers: {
    serverId: {
      type: Server,
      title: 'server',
      mayFollow: 'creation',
      // They are of these kinds.
      requireUsable: (server, spec) => requireServer(server as ServerObject, (spec as StorageSpec).zone),
    },
  },
  reads: SOURCE_READS,
  readable({ title, labels, sizeGibibytes, isBoot, ...spec }) {
    requireReadable('title', Printable, title)
    requireReadable('labels', Labels.optional(), labels)
    requireReadableSchedule(spec)
    // The plan of its server determines the size of a boot disk.
    if (!isBoot) requireDiskSize(sizeGibibytes, 'sizeGibibytes')
  },
  create: {
    name: 'create',
    operation: 'storage.create',
    needs: 'standing',
    allow({ accountId, spec }, world) {
      if (spec.isBoot) throw forbidden('Boot storages are made by the platform only, with their servers.')
      resolveSource({ world, namespace: accountNamespace(accountId) }, spec)
      requireOpenZone(world, spec.zone)
      requireScheduleZone(world, spec)
      requireCopyZone(world, spec)
    },
    async claim(tx, { accountId, id, spec: { zone, sizeGibibytes, serverId, source } }, { caches, clock }) {
      const server = serverId === undefined ? undefined : await findServerClaims(tx, { accountId, serverId })
      const place = placeOfSource({ world: worldOf(caches), namespace: accountNamespace(accountId) }, source)
      const demand = { ...storageOf({ accountId, id }), zone, sizeGibibytes, ...place }
      await claimStorage(tx, { ...demand, preferredNode: server?.placement.node }, clock.now())
    },
    release: (tx, target) => deleteStorageClaim(tx, storageOf(target)),
    stanza: ({ spec: { sizeGibibytes, source } }) => ({ gibibytes: sizeGibibytes, ...clonedFrom(source) }),
    detail: ({ zone, sizeGibibytes, tier, source }) => ({
      zone,
      size_gibibytes: String(sizeGibibytes),
      tier,
      ...(source === undefined ? {} : { source: `${source.kind}:${source.id}` }),
    }),
    by: fromBody(routes.createStorage, (body, _spec: undefined, _params, { accountId, world }): StorageSpec => {
      const source = sourceOf(body)
      const demand = { source, zone: body.zone, sizeGibibytes: body.size_gibibytes }
      return {
        ...resolveSource({ world, namespace: accountNamespace(accountId) }, demand),
        title: body.title,
        tier: body.tier,
        ...defined({ source }),
        ...(body.server_id == null ? {} : { serverId: body.server_id }),
        isBoot: false,
        labels: body.labels,
        backupRetentionDays: body.backup_retention_days,
        ...(body.backup_schedule == null ? {} : { backupSchedule: body.backup_schedule }),
        isProtected: body.is_protected,
      }
    }),
  },
  changes: {
    boot: { sets: ['isBoot'], ...refusing(() => badField('isBoot', 'cannot be changed')) },
    move: { sets: ['tier'], ...refusing(() => badField('tier', 'cannot be changed: operators move the storage')) },
    follow: { sets: ['zone'], ...refusing(() => badField('zone', 'cannot be changed')) },
    describe: {
      sets: ['title', 'labels', 'backupRetentionDays', 'isProtected'],
      action: 'update',
      by: fromBody(
        routes.updateStorage,
        (body, spec: StorageSpec): Patch<StorageSpec> => ({
          title: body.title ?? spec.title,
          labels: body.labels ?? spec.labels,
          backupRetentionDays: body.backup_retention_days ?? spec.backupRetentionDays,
          isProtected: body.is_protected ?? spec.isProtected,
        }),
      ),
    },
    schedule: {
      sets: ['backupSchedule'],
      action: 'update',
      allow: ({ spec }, world) => requireScheduleZone(world, spec),
      by: fromBody(
        routes.updateStorage,
        ({ backup_schedule: schedule }, { backupSchedule }: StorageSpec): Patch<StorageSpec> => ({
          backupSchedule: schedule === undefined ? backupSchedule : (schedule ?? undefined),
        }),
      ),
    },
    copy: {
      sets: ['backupCopyZone'],
      action: 'update',
      allow: ({ spec }, world) => requireCopyZone(world, spec),
      by: fromBody(
        routes.updateStorage,
        ({ backup_copy_zone: zone }, { backupCopyZone }: StorageSpec): Patch<StorageSpec> => ({
          backupCopyZone: zone === undefined ? backupCopyZone : (zone ?? undefined),
        }),
      ),
    },
    attach: {
      sets: ['serverId'],
      when: ({ serverId }) => serverId !== undefined,
      operation: 'storage.attach',
      condition: 'Attached',
      allow: ({ facts }) => requireAttachable(facts),
      async claim(tx, { uid: volume = '', spec: { serverId }, ...target }) {
        if (serverId !== undefined) await attachStorage(tx, { ...storageOf(target), serverId, volume })
      },
      async release(tx, { changes, ...target }, stored) {
        const serverId = changes.find(({ field }) => field === 'server_id')?.after
        if (typeof serverId !== 'string') return
        await withdrawAttachment(tx, { ...storageOf(target), serverId }, stored?.spec.serverId === serverId)
      },
      stanza: ({ spec }) => ({ gibibytes: spec.sizeGibibytes }),
      by: fromBody(routes.attachStorage, ({ server_id }): Patch<StorageSpec> => ({ serverId: server_id })),
    },
    detach: {
      sets: ['serverId'],
      when: ({ serverId }) => serverId === undefined,
      operation: 'storage.detach',
      allow: ({ facts, options }) => requireDetachable(facts, options?.['force'] === 'true'),
      stanza: ({ facts, options }) => ({ arguments: { force: 'false', ...options, server_id: facts.serverId ?? '' } }),
      by: {
        ...fromBody(routes.detachStorage, (): Patch<StorageSpec> => ({ serverId: undefined })),
        options: ({ force }: BodyOf<typeof routes.detachStorage>) => ({ force: String(force) }),
      },
    },
    growBoot: {
      sets: ['sizeGibibytes'],
      when: ({ isBoot }) => isBoot,
      ...refusing(() => forbidden('A boot storage grows through the API, or with the plan of its server.')),
      action: 'resize',
    },
    resize: {
      sets: ['sizeGibibytes'],
      operation: 'storage.resize',
      needs: 'standing',
      condition: 'Resized',
      allow: ({ facts, spec }) => requireResizable(facts, spec.sizeGibibytes),
      claim: (tx, { spec, ...target }) => holdSize(tx, storageOf(target), spec),
      release: (tx, target, stored) => withdrawResize(tx, storageOf(target), stored?.spec),
      by: fromBody(
        routes.resizeStorage,
        ({ size_gibibytes }): Patch<StorageSpec> => ({ sizeGibibytes: size_gibibytes }),
      ),
    },
  },
  remove: {
    name: 'delete',
    operation: 'storage.delete',
    allow: ({ facts }) => requireDeletableStorage(facts),
    /** Claims nothing. The storage stays locked until the intent of the deletion exists, which refuses whatever would
     *  hold the storage. */
    claim: (tx, target) => requireEndable(tx, storageOf(target)),
    by: { route: routes.deleteStorage },
  },
})
