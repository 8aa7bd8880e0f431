/** What a managed machine says of itself. It is a guest, and whoever has broken into it says what they like: everything
 *  is bounded and checked before it is believed, and nothing but the health of its owner follows from it. */
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
/** What can be restored from an archive. */
export const ArchiveReport = z.strictObject({
  /** There is a repository. */
  isOpen: z.boolean(),
  /** Why the last attempt to archive failed; empty when it did not. */
  failure: z.string().max(DETAIL_CHARACTERS_MAXIMUM),
  observedAt: Moment,
  /** From when to when every moment can be restored to, but for the gaps. */
  earliestAt: Moment.nullable(),
  latestAt: Moment.nullable(),
  gaps: z.array(z.strictObject({ from: Moment, to: Moment })).max(ARCHIVE_GAPS_MAXIMUM),
  /** When a full archive removed a backup before its time; null when none is missing now. Images before have none. */
  shortenedAt: Moment.nullable().optional(),
  /** What is not archived since then: `paused` while it goes on, `resuming` until a backup holds what came after it. */
  pause: z
    .strictObject({
      state: z.enum(['paused', 'resuming']),
      reason: z.enum(ARCHIVE_PAUSE_REASONS),
      since: Moment,
      /** The last moment that can be restored to; null when there is none. */
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
/** How HAProxy judges a server of a backend. */
export const SERVER_STATUSES = ['up', 'down', 'maint', 'drain', 'unchecked'] as const

export const MachineReport = z.strictObject({
  /** Those that the document has. */
  services: z.partialRecord(
    z.enum(MACHINE_SERVICES),
    z.strictObject({ isRunning: z.boolean(), detail: z.string().max(DETAIL_CHARACTERS_MAXIMUM).optional() }),
  ),
  postgresql: z
    .strictObject({
      state: z.enum(['preparing', 'restoring', 'failed', 'running']),
      /** Of the owner's password that holds; 0 before the first. */
      passwordGeneration: Count,
      /** Whether the owner gets in with it: people change passwords and rights by SQL. Absent while nobody knows. */
      ownerSignsIn: z.boolean().optional(),
      connections: Count.optional(),
      sizeBytes: Count.optional(),
      archive: ArchiveReport.optional(),
    })
    .optional(),
  devCluster: z
    .strictObject({
      /** Its API says that it is ready. */
      isReady: z.boolean(),
      /** Its node says so. */
      isNodeReady: z.boolean(),
      /** What is wrong, or what is waited for; empty otherwise. */
      detail: z.string().max(DETAIL_CHARACTERS_MAXIMUM),
      /** Who signs the certificate of its API, in PEM. */
      certificateAuthority: z.string().max(4_096).optional(),
      /** Service accounts with all rights that are there for the platform to give away, each to one holder. */
      admins: z
        .array(z.strictObject({ name: Name, uid: z.uuid() }))
        .max(DEV_ADMINS_MAXIMUM)
        .optional(),
      /** Of images from before: the one account that all administrators shared. Nobody is given a token of it. */
      adminUid: z.string().max(64).optional(),
      /** What its API says that it runs. */
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
      /** Servers that the report has no room for. */
      omitted: Count.optional(),
    })
    .optional(),
})
export type MachineReport = z.infer<typeof MachineReport>

/** What the script answers to whatever it is asked. */
export const MachineAnswer = z.strictObject({
  /** uid of the Server whose document it runs; empty before the first. */
  machine: z.string().max(63),
  generation: Count,
  fingerprint: z.string().max(64),
  isHealthy: z.boolean(),
  /** Why it is not, or why what was delivered is not what runs. */
  detail: z.string().max(1_024),
  report: MachineReport,
})
export type MachineAnswer = z.infer<typeof MachineAnswer>

/** The report in the status; undefined without one, and for what is no report. */
export function reportOf(text: string | undefined): MachineReport | undefined {
  if (text === undefined) return undefined
  try {
    return MachineReport.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
