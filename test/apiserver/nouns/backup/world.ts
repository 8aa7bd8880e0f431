/** Storages and backups in whatever state, put there as the platform would, for tests of what the interfaces refuse. */
import { openAdmission } from '../../../../apiserver/kit/admission/admit.ts'
import { AdmissionReview } from '../../../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import { makeNamespace } from '../../../../kit/kube/namespaces.ts'
import type { KubeObject, ResourceType } from '../../../../kit/kube/object.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { Backup, type BackupSpec, type BackupStatus } from '../../../../resources/backup/index.ts'
import { Zone } from '../../../../resources/catalog/index.ts'
import { accountNamespace, accountNamespaceOf } from '../../../../resources/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../../resources/storage/index.ts'
import type { Cloud, Person } from '../../cloud.ts'

export const AT = '2026-01-01T00:00:00Z'
/** It has no place for backups. */
export const BARE_ZONE = 'eu-1-b'
/** Its hosts reach the backups of the first zone too. */
export const COPY_ZONE = 'eu-1-c'
/** In another region. */
export const FAR_ZONE = 'eu-2-a'

export const stanza = (kind: OperationKind) => ({
  id: newUuid(systemRandom),
  kind,
  requestedAt: AT,
  deadlineAt: '2099-01-01T00:00:00Z',
  actor: 'user:1',
  requestId: 'r1',
})

export interface Given<Spec, Status> {
  readonly spec?: Partial<Spec>
  readonly status?: Partial<Status>
}

export async function openWorld(cloud: Cloud, person: Person) {
  const namespace = accountNamespace(person.accountId)
  await makeNamespace(cloud.admin, accountNamespaceOf(person.accountId))
  for (const [name, region] of [
    [BARE_ZONE, 'eu-1'],
    [COPY_ZONE, 'eu-1'],
    [FAR_ZONE, 'eu-2'],
  ] as const)
    await cloud.admin.create(Zone, {
      metadata: { name },
      spec: { displayName: name, region, isClosed: false, capabilities: [] },
    })
  await cloud.db.updateTable('node_capacity').set({ has_backups: true }).where('node', '=', cloud.node).execute()
  for (const [name, status] of [
    [cloud.zone, { hasBackups: true }],
    [BARE_ZONE, { hasBackups: false }],
    [COPY_ZONE, { hasBackups: true, backupSources: [cloud.zone] }],
    [FAR_ZONE, { hasBackups: true }],
  ] as const)
    cloud.caches.of(Zone).apply(await cloud.admin.patch(Zone, { name }, { status }, 'status'))

  /** Answers its name. */
  async function put<Spec, Status>(
    type: ResourceType<Spec, Status>,
    spec: Spec,
    status: object,
    {
      isDeleting = false,
      name = newUuid(systemRandom),
    }: { readonly isDeleting?: boolean; readonly name?: string } = {},
  ): Promise<string> {
    const key = { namespace, name }
    await cloud.admin.create(type, {
      metadata: { ...key, finalizers: ['svccloud.dev/of-a-test'] },
      spec,
    })
    const written = await cloud.admin.patch(type, key, { status }, 'status')
    if (isDeleting) await cloud.admin.delete(type, key)
    cloud.caches.of(type).apply(isDeleting ? ((await cloud.admin.get(type, key)) ?? written) : written)
    return key.name
  }

  const storage = (
    { spec, status }: Given<StorageSpec, StorageStatus> = {},
    { isDeleting = false }: { readonly isDeleting?: boolean } = {},
  ) =>
    put<StorageSpec, StorageStatus>(
      Storage,
      {
        zone: cloud.zone,
        title: '',
        sizeGibibytes: 2,
        tier: 'standard',
        isBoot: false,
        labels: {},
        isProtected: false,
        ...spec,
      },
      { state: 'online', sizeGibibytes: 2, nodeName: cloud.node, ...status },
      { isDeleting },
    )
  const server = (
    state: ServerStatus['state'],
    desiredPower: ServerSpec['desiredPower'],
    { spec, status }: Given<ServerSpec, ServerStatus> = {},
    named: { readonly isDeleting?: boolean; readonly name?: string } = {},
  ) =>
    put<ServerSpec, ServerStatus>(
      Server,
      // the API server fills in the defaults
      {
        hostname: `h${newUuid(systemRandom)}`,
        zone: cloud.zone,
        plan: 'tiny',
        template: 'tiny-linux',
        desiredPower,
        ...spec,
      } as ServerSpec,
      { state, ...status },
      named,
    )
  /** Complete, of a storage that is there, unless given otherwise. */
  const backup = async (
    { spec, status }: Given<BackupSpec, BackupStatus> = {},
    { isDeleting = false }: { readonly isDeleting?: boolean } = {},
  ) =>
    put<BackupSpec, BackupStatus>(
      Backup,
      { storageId: spec?.storageId ?? (await storage()), title: '', kind: 'manual', ...spec },
      { state: 'online', zone: cloud.zone, sizeGibibytes: 2, completedAt: AT, ...status },
      { isDeleting },
    )

  const admit = openAdmission({
    caches: cloud.caches,
    db: cloud.db,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    platformUsers: [],
    kinds: KINDS,
  })
  await cloud.caches.ready()

  /** What kubectl would get: the code and the message, or undefined when it may. */
  async function ask(
    plural: 'backups' | 'floatingips' | 'customimages' | 'snapshots' | 'storages',
    operation: 'CREATE' | 'UPDATE' | 'DELETE',
    { object, oldObject }: { readonly object?: unknown; readonly oldObject?: unknown },
  ): Promise<string | undefined> {
    const { request } = AdmissionReview.parse({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: newUuid(systemRandom),
        resource: { group: 'svccloud.dev', resource: plural },
        userInfo: { username: 'grace@example.com' },
        namespace,
        operation,
        object: object ?? null,
        oldObject: oldObject ?? null,
      },
    })
    const { response } = (await admit(request, { isAuthenticated: false })) as {
      readonly response: {
        readonly allowed: boolean
        readonly status?: { readonly code: number; readonly message: string }
      }
    }
    return response.allowed ? undefined : `${response.status?.code} ${response.status?.message}`
  }

  /** Everything of the account that a refusal must leave as it is. */
  async function contents(): Promise<unknown> {
    const versions = ({ metadata: { name, resourceVersion } }: KubeObject<unknown>) => `${name} ${resourceVersion}`
    return {
      backups: (await cloud.admin.list(Backup, { namespace })).items.map(versions).sort(),
      storages: (await cloud.admin.list(Storage, { namespace })).items.map(versions).sort(),
      quotas: await cloud.db
        .selectFrom('account_quota')
        .select(['name', 'used'])
        .where('account_id', '=', person.accountId)
        .orderBy('name')
        .execute(),
    }
  }

  return { namespace, put, storage, server, backup, ask, contents }
}
export type World = Awaited<ReturnType<typeof openWorld>>
