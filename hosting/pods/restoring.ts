/** The Job that restores a snapshot to the volume of a member of etcd: a program receives it, and etcd's own program
 *  creates the folder of the next generation from it. Pure. */
import { restoreFlags } from '../core/flags.ts'
import { labelsOf, metadataOf } from './base.ts'
import { Job, type Manifest, PersistentVolumeClaim } from './kinds.ts'
import {
  claimName,
  ETCD,
  etcdPlace,
  FOLDERS,
  memberName,
  membershipOf,
  PART_LABEL,
  PORTS,
  RESTORE,
  SNAPSHOT_FILE,
} from './names.ts'
import type { PodsRecord } from './record.ts'
import type { HostSettings } from './settings.ts'
import { SIZES } from './sizes.ts'
import { claimSpec, containerOf, filesVolume, podSpec, STORES } from './workloads.ts'

/** Time after which each part of a restore gives up. */
const DEADLINE_SECONDS = 600

export const restoreName = (member: number): string => `${RESTORE}-${member}`

/** The claim for the volume of a member, as its StatefulSet would create it. */
export const claimManifest = (record: PodsRecord, member: number): Manifest => ({
  type: PersistentVolumeClaim,
  object: { metadata: metadataOf(record, claimName(member)), spec: claimSpec(record) },
})

/** Restores to the folder of the record's generation; the previous generation stays until the next restore. */
export function restoreManifest(record: PodsRecord, settings: HostSettings, member: number): Manifest {
  const { images } = settings
  const mounts = { files: FOLDERS.files, data: FOLDERS.data }
  const place = etcdPlace(record, memberName(member))
  const receiver = containerOf({
    name: 'receiver',
    image: images.platform,
    size: SIZES.receiver,
    mounts,
    command: [
      'node',
      'hosting/pods/pod/receive.ts',
      FOLDERS.files,
      FOLDERS.data,
      String(record.generation),
      String(PORTS.receiver),
    ],
  })
  const writer = containerOf({
    name: 'writer',
    image: images.etcd,
    size: SIZES.etcd,
    mounts,
    command: ['etcdutl', ...restoreFlags(place, membershipOf(record), SNAPSHOT_FILE)],
  })
  const name = restoreName(member)
  return {
    type: Job,
    object: {
      metadata: metadataOf(record, name),
      spec: {
        backoffLimit: 0,
        activeDeadlineSeconds: DEADLINE_SECONDS,
        template: {
          metadata: { labels: { ...labelsOf(record), [PART_LABEL]: RESTORE, ...STORES, 'svccloud.dev/member': name } },
          spec: podSpec(settings, STORES, {
            restartPolicy: 'Never',
            initContainers: [receiver],
            containers: [writer],
            volumes: [filesVolume(ETCD), { name: 'data', persistentVolumeClaim: { claimName: claimName(member) } }],
          }),
        },
      },
    },
  }
}
