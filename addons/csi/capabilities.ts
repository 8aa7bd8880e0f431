/** Supported ways to use a storage: by one server at a time, as a file system or as a raw disk. */
import type { AccessMode, VolumeCapability } from './messages.ts'
import { Refused } from './refusal.ts'

export const FILE_SYSTEMS = ['ext4', 'xfs'] as const
export type FileSystem = (typeof FILE_SYSTEMS)[number]

const MODES: readonly AccessMode[] = [
  'SINGLE_NODE_WRITER',
  'SINGLE_NODE_READER_ONLY',
  'SINGLE_NODE_SINGLE_WRITER',
  'SINGLE_NODE_MULTI_WRITER',
]

/** Why a storage cannot be used in this way, for people; undefined when it can. */
export function faultOf({ block, mount, accessMode }: VolumeCapability): string | undefined {
  const mode = accessMode?.mode ?? 'UNKNOWN'
  if (block === undefined && mount === undefined) return 'volume_capability says neither block nor mount'
  if (!MODES.includes(mode)) return `access mode ${mode}: a volume has one node at a time`
  return mount === undefined || fileSystemOf(mount.fsType) !== undefined
    ? undefined
    : `file system ${mount.fsType}: it is one of ${FILE_SYSTEMS.join(', ')}`
}

/** The default for an empty text; undefined for a file system that nodes do not support. */
export const fileSystemOf = (text: string): FileSystem | undefined =>
  text === '' ? FILE_SYSTEMS[0] : FILE_SYSTEMS.find((name) => name === text)

/** Throws when there is none, or an unsupported one. */
export function requireCapabilities(capabilities: readonly VolumeCapability[]): void {
  if (capabilities.length === 0) throw new Refused('INVALID_ARGUMENT', 'volume_capabilities is missing')
  for (const fault of capabilities.map(faultOf)) if (fault !== undefined) throw new Refused('INVALID_ARGUMENT', fault)
}

/** Throws when it is missing or unsupported. */
export function requireCapability(capability: VolumeCapability | null): VolumeCapability {
  requireCapabilities(capability === null ? [] : [capability])
  if (capability === null) throw new Refused('INVALID_ARGUMENT', 'volume_capability is missing')
  return capability
}
