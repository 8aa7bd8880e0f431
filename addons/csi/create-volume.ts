/** CreateVolume: a storage with that name, created once, in one of the requested zones. */
import { type Client, OperationFailed, SvccloudError, unwrap, waitForOperation } from '../../client/index.ts'
import { defined } from '../../domain/defined.ts'
import { STORAGE_GIBIBYTES_MAXIMUM } from '../../domain/storage/rules.ts'
import { requireCapabilities } from './capabilities.ts'
import { ZONE_KEY } from './identity.ts'
import type { CapacityRange, ContentSource, CreateVolumeRequest, TopologyRequirement, Volume } from './messages.ts'
import { Refused, required } from './refusal.ts'
import {
  type ClusterStorages,
  findStorage,
  GIBIBYTE,
  idleStorage,
  storageLabels,
  makeOnce,
  readSnapshot,
  readStorage,
  requireOwn,
  type Storage,
  titleOf,
} from './storages.ts'

const TIERS = ['standard', 'local-nvme'] as const
type Tier = (typeof TIERS)[number]

/** Prefix of parameters that the provisioner adds, and the parameters for a title. */
const PROVISIONER = 'csi.storage.k8s.io/'
const CLAIM = ['namespace', 'name'].map((part) => `${PROVISIONER}pvc/${part}`)

interface Source {
  readonly kind: 'snapshot' | 'storage'
  readonly id: string
}

interface VolumeRequest {
  readonly name: string
  readonly title: string
  readonly tier: Tier
  /** Minimum and maximum; a maximum of 0 means none. */
  readonly bytes: CapacityRange
  readonly source: Source | null
  /** In order of preference; none means any zone. */
  readonly zones: readonly string[]
}

/** The storage in the form for callers. */
export function volumeOf({ id, size_gibibytes, source, zone }: Storage): Volume {
  const contentSource: ContentSource | undefined =
    source?.kind === 'snapshot'
      ? { snapshot: { snapshotId: source.id } }
      : source?.kind === 'storage'
        ? { volume: { volumeId: source.id } }
        : undefined
  return {
    capacityBytes: size_gibibytes * GIBIBYTE,
    volumeId: id,
    volumeContext: {},
    ...defined({ contentSource }),
    accessibleTopology: [{ segments: { [ZONE_KEY]: zone } }],
  }
}

/** The caller must prevent concurrent requests for the same name. */
export async function createVolume(storages: ClusterStorages, request: CreateVolumeRequest): Promise<Volume> {
  const wanted = wantedOf(request)
  const found = await findStorage(storages, wanted.name)
  if (found === undefined) return volumeOf(await createStorage(storages, wanted))
  const fault = differenceOf(found, wanted)
  if (fault !== undefined) throw new Refused('ALREADY_EXISTS', `volume ${wanted.name} is there with ${fault}`)
  return volumeOf(await whole(storages.client, found.id))
}

function wantedOf(request: CreateVolumeRequest): VolumeRequest {
  const { parameters, capacityRange, volumeContentSource: content, accessibilityRequirements } = request
  const name = required(request.name, 'name')
  requireCapabilities(request.volumeCapabilities)
  const { snapshot, volume } = content ?? {}
  if (content !== null && snapshot === undefined && volume === undefined)
    throw new Refused('INVALID_ARGUMENT', 'volume_content_source says neither snapshot nor volume')
  return {
    name,
    title: titleOf(parameters, CLAIM) ?? name,
    tier: volumeTier(parameters),
    bytes: capacityRange ?? { requiredBytes: 0, limitBytes: 0 },
    source:
      snapshot !== undefined
        ? { kind: 'snapshot', id: snapshot.snapshotId }
        : volume === undefined
          ? null
          : { kind: 'storage', id: volume.volumeId },
    zones: zonesOf(accessibilityRequirements),
  }
}

/** Throws for unknown parameters. */
export function volumeTier(parameters: Readonly<Record<string, string>>): Tier {
  const strange = Object.keys(parameters).filter((key) => key !== 'tier' && !key.startsWith(PROVISIONER))
  if (strange.length > 0) throw new Refused('INVALID_ARGUMENT', `unknown parameters: ${strange.join(', ')}`)
  const { tier: text = TIERS[0] } = parameters
  const tier = TIERS.find((known) => known === text)
  if (tier === undefined) throw new Refused('INVALID_ARGUMENT', `parameter tier is one of ${TIERS.join(', ')}`)
  return tier
}

function zonesOf(requirement: TopologyRequirement | null): readonly string[] {
  const { requisite = [], preferred = [] } = requirement ?? {}
  const zones = [...preferred, ...requisite].flatMap(({ segments }) => segments[ZONE_KEY] ?? [])
  if (zones.length === 0 && requisite.length > 0)
    throw new Refused('INVALID_ARGUMENT', `accessibility_requirements do not say ${ZONE_KEY}`)
  return [...new Set(zones)]
}

/** The requested size in whole GiB. Throws for an impossible one. */
export function volumeGibibytes({ requiredBytes, limitBytes }: CapacityRange): number {
  if (requiredBytes < 0 || limitBytes < 0) throw new Refused('INVALID_ARGUMENT', 'capacity_range is negative')
  const size = Math.max(1, Math.ceil(requiredBytes / GIBIBYTE))
  if (limitBytes > 0 && size * GIBIBYTE > limitBytes)
    throw new Refused('OUT_OF_RANGE', `the least that holds it is ${size} GiB, which is above the limit`)
  if (size > STORAGE_GIBIBYTES_MAXIMUM)
    throw new Refused('OUT_OF_RANGE', `a volume has at most ${STORAGE_GIBIBYTES_MAXIMUM} GiB`)
  return size
}

/** How the storage differs from the request; undefined when it matches. */
function differenceOf(storage: Storage, { bytes, tier, source, zones }: VolumeRequest): string | undefined {
  const size = storage.size_gibibytes * GIBIBYTE
  if (size < bytes.requiredBytes || (bytes.limitBytes > 0 && size > bytes.limitBytes)) return 'another size'
  if (storage.tier !== tier) return 'another tier'
  if (storage.source?.id !== source?.id || storage.source?.kind !== source?.kind) return 'another source'
  return zones.length === 0 || zones.includes(storage.zone) ? undefined : 'another zone'
}

/** Waits until an existing storage is ready. Its creation may be in progress, or have failed while nobody waited. */
async function whole(client: Client, id: string): Promise<Storage> {
  const storage = await idleStorage(client, id)
  if (storage === undefined) throw new Refused('ABORTED', 'the volume is being deleted')
  if (storage.state === 'online') return storage
  if (await hasFailedToBeMade(client, id)) await discard(client, id)
  throw new Refused('INTERNAL', `the storage ${id} is ${storage.state}: ${storage.state_detail}`)
}

/** Whether its creation failed, so that it never contained data. */
async function hasFailedToBeMade(client: Client, id: string): Promise<boolean> {
  const query = { resource: `storage:${id}`, limit: 1 }
  const { items } = await unwrap(client.GET('/v1/operations', { params: { query } }))
  return items[0]?.kind === 'storage.create' && ['failed', 'cancelled'].includes(items[0].status)
}

async function discard(client: Client, id: string): Promise<void> {
  const { operation } = await unwrap(client.DELETE('/v1/storages/{id}', { params: { path: { id } } }))
  await waitForOperation(client, operation.id)
}

async function createStorage(storages: ClusterStorages, wanted: VolumeRequest): Promise<Storage> {
  const { zone } = storages
  const origin = wanted.source === null ? undefined : await originOf(storages, wanted.source)
  const zones = wanted.zones.length === 0 ? [origin?.zone ?? zone] : wanted.zones
  const possible = origin === undefined ? zones : zones.filter((name) => name === origin.zone)
  if (possible.length === 0)
    throw new Refused('RESOURCE_EXHAUSTED', `the source is in zone ${origin?.zone}, where no node may use it`)
  const { requiredBytes, limitBytes } = wanted.bytes
  const originBytes = (origin?.gibibytes ?? 0) * GIBIBYTE
  if (requiredBytes > 0 && requiredBytes < originBytes)
    throw new Refused('OUT_OF_RANGE', `the source has ${origin?.gibibytes} GiB`)
  const gibibytes = volumeGibibytes({ requiredBytes: Math.max(requiredBytes, originBytes), limitBytes })
  let refused: unknown
  for (const name of possible)
    try {
      return await madeIn(storages, wanted, { zone: name, gibibytes })
    } catch (error) {
      if (!(error instanceof SvccloudError) || error.problem.reason !== 'no_capacity') throw error
      refused = error
    }
  throw refused
}

/** Throws when it does not exist, or does not belong to this cluster. */
async function originOf(
  storages: ClusterStorages,
  { kind, id }: Source,
): Promise<{ readonly zone: string; readonly gibibytes: number }> {
  const { client } = storages
  const found = kind === 'snapshot' ? await readSnapshot(client, id) : await readStorage(client, id)
  if (found === undefined) throw new Refused('NOT_FOUND', `there is no ${kind} ${id}`)
  requireOwn(storages, found)
  return { zone: found.zone, gibibytes: found.size_gibibytes }
}

async function madeIn(
  storages: ClusterStorages,
  { name, title, tier, source }: VolumeRequest,
  { zone, gibibytes }: { readonly zone: string; readonly gibibytes: number },
): Promise<Storage> {
  const { client, clusterId } = storages
  const body = {
    zone,
    title,
    tier,
    size_gibibytes: gibibytes,
    labels: storageLabels(storages, name),
    ...(source?.kind === 'snapshot' ? { source_snapshot_id: source.id } : {}),
    ...(source?.kind === 'storage' ? { source_storage_id: source.id } : {}),
  }
  const { storage, operation } = await makeOnce({
    text: `csi-volume/${clusterId}/${zone}/${name}`,
    post: (key) => client.POST('/v1/storages', { headers: { 'idempotency-key': key }, body }),
    isThere: async (answer) => (await readStorage(client, answer.storage.id)) !== undefined,
  })
  try {
    await waitForOperation(client, operation.id)
  } catch (error) {
    if (error instanceof OperationFailed) await discard(client, storage.id)
    throw error
  }
  return (await readStorage(client, storage.id)) ?? storage
}
