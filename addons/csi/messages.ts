/** Decoded requests and responses of the Container Storage Interface, as defined in `csi.proto`: absent messages are
 *  null, absent texts empty, absent numbers 0. */

type Texts = Readonly<Record<string, string>>

export type AccessMode =
  | 'UNKNOWN'
  | 'SINGLE_NODE_WRITER'
  | 'SINGLE_NODE_READER_ONLY'
  | 'MULTI_NODE_READER_ONLY'
  | 'MULTI_NODE_SINGLE_WRITER'
  | 'MULTI_NODE_MULTI_WRITER'
  | 'SINGLE_NODE_SINGLE_WRITER'
  | 'SINGLE_NODE_MULTI_WRITER'

export interface VolumeCapability {
  readonly block?: object
  readonly mount?: { readonly fsType: string; readonly mountFlags: readonly string[] }
  readonly accessMode: { readonly mode: AccessMode } | null
}
export interface CapacityRange {
  readonly requiredBytes: number
  readonly limitBytes: number
}
export interface Topology {
  readonly segments: Texts
}
export interface TopologyRequirement {
  readonly requisite: readonly Topology[]
  readonly preferred: readonly Topology[]
}
export interface ContentSource {
  readonly snapshot?: { readonly snapshotId: string }
  readonly volume?: { readonly volumeId: string }
}
export interface Volume {
  readonly capacityBytes: number
  readonly volumeId: string
  readonly volumeContext: Texts
  readonly contentSource?: ContentSource
  readonly accessibleTopology: readonly Topology[]
}
export interface CsiSnapshot {
  readonly sizeBytes: number
  readonly snapshotId: string
  readonly sourceVolumeId: string
  readonly creationTime: { readonly seconds: number; readonly nanos: number }
  readonly readyToUse: boolean
}

type Method<Request, Answer> = (request: Request) => Promise<Answer>
type Nothing = Readonly<Record<string, never>>
interface OfVolume {
  readonly volumeId: string
}
export interface Page {
  /** 0 for no limit. */
  readonly maxEntries: number
  readonly startingToken: string
}
interface Pages<Entry> {
  readonly entries: readonly Entry[]
  readonly nextToken: string
}
interface RpcCapabilities {
  readonly capabilities: readonly { readonly rpc: { readonly type: string } }[]
}

export interface CreateVolumeRequest {
  readonly name: string
  readonly capacityRange: CapacityRange | null
  readonly volumeCapabilities: readonly VolumeCapability[]
  readonly parameters: Texts
  readonly volumeContentSource: ContentSource | null
  readonly accessibilityRequirements: TopologyRequirement | null
}
export interface PublishRequest extends OfVolume {
  readonly nodeId: string
  readonly volumeCapability: VolumeCapability | null
}
export interface ValidateRequest extends OfVolume {
  readonly volumeContext: Texts
  readonly volumeCapabilities: readonly VolumeCapability[]
  readonly parameters: Texts
}
export interface ValidateAnswer {
  readonly confirmed?: Omit<ValidateRequest, 'volumeId'>
  readonly message: string
}
export interface CreateSnapshotRequest {
  readonly sourceVolumeId: string
  readonly name: string
  readonly parameters: Texts
}
export interface ListSnapshotsRequest extends Page {
  readonly sourceVolumeId: string
  readonly snapshotId: string
}
export interface ExpandRequest extends OfVolume {
  readonly capacityRange: CapacityRange | null
  readonly volumeCapability: VolumeCapability | null
}
export interface ExpandAnswer {
  readonly capacityBytes: number
  readonly nodeExpansionRequired: boolean
}
export interface VolumeEntry {
  readonly volume: Volume
  readonly status: { readonly publishedNodeIds: readonly string[] }
}

export interface IdentityService {
  GetPluginInfo: Method<Nothing, { readonly name: string; readonly vendorVersion: string }>
  GetPluginCapabilities: Method<Nothing, { readonly capabilities: readonly object[] }>
  Probe: Method<Nothing, { readonly ready: { readonly value: boolean } }>
}

export interface ControllerService {
  CreateVolume: Method<CreateVolumeRequest, { readonly volume: Volume }>
  DeleteVolume: Method<OfVolume, Nothing>
  ControllerPublishVolume: Method<PublishRequest, { readonly publishContext: Texts }>
  ControllerUnpublishVolume: Method<Omit<PublishRequest, 'volumeCapability'>, Nothing>
  ValidateVolumeCapabilities: Method<ValidateRequest, ValidateAnswer>
  ListVolumes: Method<Page, Pages<VolumeEntry>>
  ControllerGetCapabilities: Method<Nothing, RpcCapabilities>
  CreateSnapshot: Method<CreateSnapshotRequest, { readonly snapshot: CsiSnapshot }>
  DeleteSnapshot: Method<{ readonly snapshotId: string }, Nothing>
  ListSnapshots: Method<ListSnapshotsRequest, Pages<{ readonly snapshot: CsiSnapshot }>>
  ControllerExpandVolume: Method<ExpandRequest, ExpandAnswer>
}

export interface StageRequest extends OfVolume {
  readonly publishContext: Texts
  readonly stagingTargetPath: string
  readonly volumeCapability: VolumeCapability | null
}
export interface NodePublishRequest extends StageRequest {
  readonly targetPath: string
  readonly readonly: boolean
}
export interface VolumeUsage {
  readonly available?: number
  readonly total: number
  readonly used?: number
  readonly unit: 'BYTES' | 'INODES'
}

export interface NodeService {
  NodeStageVolume: Method<StageRequest, Nothing>
  NodeUnstageVolume: Method<OfVolume & { readonly stagingTargetPath: string }, Nothing>
  NodePublishVolume: Method<NodePublishRequest, Nothing>
  NodeUnpublishVolume: Method<OfVolume & { readonly targetPath: string }, Nothing>
  NodeGetVolumeStats: Method<OfVolume & { readonly volumePath: string }, { readonly usage: readonly VolumeUsage[] }>
  NodeExpandVolume: Method<OfVolume & { readonly volumePath: string }, { readonly capacityBytes: number }>
  NodeGetCapabilities: Method<Nothing, RpcCapabilities>
  NodeGetInfo: Method<
    Nothing,
    { readonly nodeId: string; readonly maxVolumesPerNode: number; readonly accessibleTopology: Topology }
  >
}
