/** Report of a managed machine about itself. The machine is a guest, and an intruder can report anything. Everything is
 *  bounded and checked before use, and it affects only the health of its owner. */
import { z } from 'zod'
import { ARCHIVE_PAUSE_REASONS } from '../../domain/database/rules.ts'
import { DEV_ADMINS_MAXIMUM } from '../../domain/dev-cluster/rules.ts'

/** Of the report as JSON. */
export const MACHINE_REPORT_BYTES_MAXIMUM = 16_384
const DETAIL_CHARACTERS_MAXIMUM = 300
const NAME_CHARACTERS_MAXIMUM = 160
const LINES_MAXIMUM = 1_024
export const ARCHIVE_GAPS_MAXIMUM = 16
export const ARCHIVE_BACKUPS_MAXIMUM = 64

export const MACHINE_SERVICES = [
  'haproxy',
  'watch',
  'keepalived',
  'nat64',
  'dns64',
  'bastion',
  'postgresql',
  'keeper',
  'containerd',
  'api',
  'kubelet',
  'kube-proxy',
  'volumes',
  'tunnel',
  'issuer',
  'etcd',
  'apiserver',
  'controller-manager',
  'scheduler',
  'objects',
  'local-path',
  'ingress',
  'ssh',
] as const

const Count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const Name = z.string().max(NAME_CHARACTERS_MAXIMUM)
const Moment = z.iso.datetime({ precision: 3 })
/** Restorable content of an archive. */
export const ArchiveReport = z.strictObject({
  /** Whether there is a repository. */
  isOpen: z.boolean(),
  /** Reason why the last attempt to archive failed; empty when it did not. */
  failure: z.string().max(DETAIL_CHARACTERS_MAXIMUM),
  observedAt: Moment,
  /** Range of restorable times, apart from the gaps. */
  earliestAt: Moment.nullable(),
  latestAt: Moment.nullable(),
  gaps: z.array(z.strictObject({ from: Moment, to: Moment })).max(ARCHIVE_GAPS_MAXIMUM),
  /** Time when a full archive removed a backup early; null when none is missing now. Earlier images do not report
   *  it. */
  shortenedAt: Moment.nullable().optional(),
  /** Missing archive data since then: `paused` while the pause lasts, `resuming` until a backup holds the later
   *  data. */
  pause: z
    .strictObject({
      state: z.enum(['paused', 'resuming']),
      reason: z.enum(ARCHIVE_PAUSE_REASONS),
      since: Moment,
      /** Latest restorable time; null when there is none. */
      from: Moment.nullable(),
    })
    .optional(),
  /** Oldest first. */
  backups: z
    .array(
      z.strictObject({
        label: z.string().regex(/^[0-9A-Za-z_-]{1,64}$/),
        startedAt: Moment,
        completedAt: Moment,
        bytes: Count,
        isRestorable: z.boolean(),
      }),
    )
    .max(ARCHIVE_BACKUPS_MAXIMUM),
})
export type ArchiveReport = z.infer<typeof ArchiveReport>
/** HAProxy's status for a server of a backend. */
export const SERVER_STATUSES = ['up', 'down', 'maint', 'drain', 'unchecked'] as const

export const MachineReport = z.strictObject({
  /** Certificates from the document. */
  services: z.partialRecord(
    z.enum(MACHINE_SERVICES),
    z.strictObject({ isRunning: z.boolean(), detail: z.string().max(DETAIL_CHARACTERS_MAXIMUM).optional() }),
  ),
  postgresql: z
    .strictObject({
      state: z.enum(['preparing', 'restoring', 'failed', 'running']),
      /** Generation of the owner's valid password; 0 before the first. */
      passwordGeneration: Count,
      /** Whether the owner can sign in with it: people change passwords and rights by SQL. Absent while unknown. */
      ownerSignsIn: z.boolean().optional(),
      connections: Count.optional(),
      sizeBytes: Count.optional(),
      archive: ArchiveReport.optional(),
    })
    .optional(),
  devCluster: z
    .strictObject({
      /** Its API reports ready. */
      isReady: z.boolean(),
      /** Its node reports ready. */
      isNodeReady: z.boolean(),
      /** The problem, or what it waits for; empty otherwise. */
      detail: z.string().max(DETAIL_CHARACTERS_MAXIMUM),
      /** CA that signs the certificate of its API, in PEM. */
      certificateAuthority: z.string().max(4_096).optional(),
      /** Service accounts with all rights that the platform may assign, each to one holder. */
      admins: z
        .array(z.strictObject({ name: Name, uid: z.uuid() }))
        .max(DEV_ADMINS_MAXIMUM)
        .optional(),
      /** From earlier images: the single account that all administrators shared. Nobody receives a token of it. */
      adminUid: z.string().max(64).optional(),
      /** Release that its API reports. */
      version: z.string().max(64).optional(),
    })
    .optional(),
  keepalived: z.strictObject({ state: z.enum(['master', 'backup', 'fault', 'unknown']) }).optional(),
  haproxy: z
    .strictObject({
      /** Name, open connections, connections so far, bytes in, bytes out, requests so far. */
      frontends: z.array(z.tuple([Name, Count, Count, Count, Count, Count])).max(LINES_MAXIMUM),
      /** Backend, name, status, open connections, connections so far, bytes in, bytes out. */
      servers: z.array(z.tuple([Name, Name, z.enum(SERVER_STATUSES), Count, Count, Count, Count])).max(LINES_MAXIMUM),
      /** Number of servers that did not fit in the report. */
      omitted: Count.optional(),
    })
    .optional(),
})
export type MachineReport = z.infer<typeof MachineReport>

/** Answer of the script to every request. */
export const MachineAnswer = z.strictObject({
  /** uid of the Server whose document it runs; empty before the first. */
  machine: z.string().max(63),
  generation: Count,
  fingerprint: z.string().max(64),
  isHealthy: z.boolean(),
  /** Why it is not healthy, or why it does not run the delivered configuration. */
  detail: z.string().max(1_024),
  report: MachineReport,
})
export type MachineAnswer = z.infer<typeof MachineAnswer>

/** The report in the status; undefined when there is none, or when it is not a valid report. */
export function reportOf(text: string | undefined): MachineReport | undefined {
  if (text === undefined) return undefined
  try {
    return MachineReport.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
