/** The guests of managed databases: a cluster on the disk with the data, its owner's password, and its archive in the
 *  object storage of the zone. Nothing of PostgreSQL runs; what it would know and say is remembered. */
import { MachineAnswer, MachineDocument, type Repository } from '../../resources/managed-machine/index.ts'
import type { Scheduler } from './scheduler.ts'
import { type Bucket, type ObjectStores, tenantByKey } from './object-stores.ts'

type Section = NonNullable<MachineDocument['postgresql']>
type ArchiveSaid = NonNullable<NonNullable<MachineAnswer['report']['postgresql']>['archive']>

export interface Cluster {
  /** Which history it is: nothing else is ever archived where it is. */
  readonly lineage: string
  /** What it began as; undefined for one that began empty. */
  readonly from: { readonly lineage: string; readonly target: number; readonly isTarget: boolean } | undefined
  /** Of the disk. */
  readonly serial: string
  passwordGeneration: number
  verifier: string
  /** What it knew of its archive last. */
  known: ArchiveSaid | undefined
}

interface Archive {
  readonly lineages: Set<string>
  readonly backups: { readonly label: string; readonly startedAt: number; completedAt: number | undefined }[]
  /** Until then every moment since the first backup can be restored to. */
  latest: number | undefined
}

/** The guest, as its host has it. */
export interface AskedGuest {
  readonly name: string
  readonly startedAt: string
  /** Volumes. */
  readonly disks: readonly string[]
  /** The image that a volume began as. */
  imageOf(volume: string): string | undefined
}

export interface DatabaseMachines {
  readonly violations: string[]
  /** The image of new machines. */
  readonly images: DatabaseImages
  /** What the guest says, in place of what a guest without a database would. */
  answer(guest: AskedGuest, request: Buffer, answer: Buffer): Buffer
  /** The clusters that lie on disks of that serial, newest last. */
  clustersOn(serial: string): readonly Cluster[]
  /** Whether what is in the bucket can be restored to the moment. */
  reaches(bucket: Bucket | undefined, moment: number): boolean
  /** What is in the bucket. */
  lineageIn(bucket: Bucket | undefined): string | undefined
}

export interface DatabaseImages {
  newest(): string
  isBad(version: string): boolean
  /** Hosts have a newer one from now on. */
  publish(): void
  onChange(listener: () => void): () => void
}

const MAKE_MILLISECONDS = { least: 300, most: 5_000 }
const BACKUP_MILLISECONDS = { least: 500, most: 4_000 }
const POINT_MILLISECONDS = 3_000
const DAY_MILLISECONDS = 86_400_000
const BAD_SHARE = 0.25

function newImages({ random }: Scheduler): DatabaseImages {
  const isSecondBad = random.fraction() < BAD_SHARE
  const listeners = new Set<() => void>()
  let newest = 1
  return {
    newest: () => String(newest),
    isBad: (version) => isSecondBad && version === '2',
    publish() {
      newest += 1
      for (const listener of listeners) listener()
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

export function newDatabaseMachines(scheduler: Scheduler, stores: ObjectStores): DatabaseMachines {
  const clusters = new Map<string, Cluster>()
  const archives = new WeakMap<Bucket, Archive>()
  const documents = new Map<string, MachineDocument>()
  const violations: string[] = []
  const images = newImages(scheduler)
  const makers = newMakers({ scheduler, stores, clusters, archives, violations })
  const archivist = newArchivist({ scheduler, stores, archives, violations })

  function look(guest: AskedGuest, section: Section): Said {
    const disk = guest.disks.find((volume) => guest.imageOf(volume) === undefined)
    const image = guest.disks.map((volume) => guest.imageOf(volume)).find((version) => version !== undefined)
    if (image !== undefined && images.isBad(image)) return { state: 'failed', detail: 'PostgreSQL does not start.' }
    if (disk === undefined) return { state: 'preparing', detail: 'the disk with the data is not there' }
    const cluster = clusters.get(disk) ?? makers.make(guest, disk, section)
    if ('state' in cluster) return cluster
    if (section.passwordGeneration < cluster.passwordGeneration)
      violations.push(`the database on ${disk} goes back to password ${section.passwordGeneration}`)
    Object.assign(cluster, { passwordGeneration: section.passwordGeneration, verifier: section.passwordVerifier })
    if (section.archive !== undefined) cluster.known = archivist.archive(guest, cluster, section.archive)
    return { state: 'running', detail: '', cluster }
  }

  return {
    violations,
    images,
    clustersOn: (serial) => [...clusters.values()].filter((cluster) => cluster.serial === serial),
    lineageIn: (bucket) => bucket && [...(archives.get(bucket)?.lineages ?? [])][0],
    reaches: (bucket, moment) => bucket !== undefined && reachesIn(archives.get(bucket), moment),
    answer(guest, request, answer) {
      const said = MachineAnswer.parse(JSON.parse(answer.toString()))
      const asked = JSON.parse(request.toString()) as { readonly document?: unknown } // the agent's own
      if (said.machine === '') documents.delete(guest.name)
      const given = asked.document === undefined ? undefined : MachineDocument.parse(asked.document)
      if (given?.machine === said.machine && given.generation === said.generation) documents.set(guest.name, given)
      const section = documents.get(guest.name)?.postgresql
      if (section === undefined) return answer
      const { state, detail, cluster } = look(guest, section)
      const postgresql = {
        state,
        passwordGeneration: cluster?.passwordGeneration ?? 0,
        ...(cluster?.known && section.archive && { archive: cluster.known }),
      }
      const isHealthy = said.isHealthy && state === 'running'
      const whole = { ...said, isHealthy, detail: said.detail || detail, report: { services: {}, postgresql } }
      return Buffer.from(JSON.stringify(MachineAnswer.parse(whole)))
    },
  }
}

interface Said {
  readonly state: 'preparing' | 'restoring' | 'failed' | 'running'
  readonly detail: string
  readonly cluster?: Cluster
}

interface Surroundings {
  readonly scheduler: Scheduler
  readonly stores: ObjectStores
  readonly archives: WeakMap<Bucket, Archive>
  readonly violations: string[]
}

const between = ({ random }: Scheduler, { least, most }: { readonly least: number; readonly most: number }): number =>
  least + random.fraction() * (most - least)

/** The bucket, or why there is none now. */
function bucketOf({ single, scheduler }: ObjectStores, repository: Repository): Bucket | 'away' | 'denied' {
  if (single.awayUntil > scheduler.nowMilliseconds) return 'away'
  const tenant = tenantByKey(single, repository.accessKeyId)
  if (tenant?.settings.secretAccessKey !== repository.secretAccessKey) return 'denied'
  return tenant.buckets.get(repository.bucket) ?? 'denied'
}

function reachesIn(archive: Archive | undefined, moment: number): boolean {
  const { latest, backups = [] } = archive ?? {}
  return (
    latest !== undefined &&
    moment <= latest &&
    backups.some(({ completedAt }) => completedAt !== undefined && completedAt < moment)
  )
}

/** Makes clusters, or restores them; whatever is begun and not finished is begun anew. */
function newMakers({
  scheduler,
  stores,
  clusters,
  archives,
  violations,
}: Surroundings & { clusters: Map<string, Cluster> }) {
  /** By disk: whose work it is, and when it is done. */
  const begun = new Map<string, { readonly by: string; readonly doneAt: number }>()
  let count = 0
  const keep = (disk: string, { diskSerial: serial }: Section, from: Cluster['from']): Cluster => {
    count += 1
    const cluster = { lineage: `history ${count}`, from, serial, passwordGeneration: 0, verifier: '', known: undefined }
    clusters.set(disk, cluster)
    begun.delete(disk)
    return cluster
  }
  function restore(disk: string, section: Section): Cluster | Said {
    const { repository, targetTime } = section.restore ?? {}
    const bucket = repository === undefined ? 'denied' : bucketOf(stores, repository)
    if (bucket === 'away') return { state: 'restoring', detail: 'the archive does not answer' }
    const archive = bucket === 'denied' ? undefined : archives.get(bucket)
    const target = targetTime == null ? archive?.latest : Date.parse(targetTime)
    const [lineage] = archive?.lineages ?? []
    if (target === undefined || lineage === undefined || !reachesIn(archive, target)) {
      const detail = `the archive does not reach to ${targetTime}`
      violations.push(`a database that is restored: ${detail}`)
      return { state: 'failed', detail }
    }
    return keep(disk, section, { lineage, target, isTarget: targetTime != null })
  }
  return {
    make(guest: AskedGuest, disk: string, section: Section): Cluster | Said {
      const by = `${guest.name} ${guest.startedAt}`
      const known = begun.get(disk)
      const work =
        known?.by === by ? known : { by, doneAt: scheduler.nowMilliseconds + between(scheduler, MAKE_MILLISECONDS) }
      begun.set(disk, work)
      const state = section.restore === undefined ? 'preparing' : 'restoring'
      if (work.doneAt > scheduler.nowMilliseconds) return { state, detail: 'the cluster is being made' }
      return section.restore === undefined ? keep(disk, section, undefined) : restore(disk, section)
    },
  }
}

const iso = (moment: number): string => new Date(moment).toISOString()

function newArchivist({ scheduler, stores, archives, violations }: Surroundings) {
  /** Ends with the guest. */
  const pending = new Map<string, { readonly by: string; readonly doneAt: number }>()
  const pointedAt = new Map<string, number>()

  function work(guest: AskedGuest, cluster: Cluster, archive: Archive, at: Section['archive']): void {
    const now = scheduler.now().getTime()
    const by = `${guest.name} ${guest.startedAt}`
    const last = archive.backups.at(-1)
    const slot = slotBefore(now, at?.fullBackupAt ?? { hour: 0, minute: 0 })
    const going = pending.get(cluster.lineage)
    if (last !== undefined && last.completedAt === undefined && going?.by !== by) archive.backups.pop()
    else if (last !== undefined && last.completedAt === undefined && (going?.doneAt ?? 0) <= now) last.completedAt = now
    const whole = archive.backups.at(-1)
    if (whole === undefined || (whole.completedAt !== undefined && whole.startedAt < slot)) {
      archive.backups.push({ label: `F${now}`, startedAt: now, completedAt: undefined })
      pending.set(cluster.lineage, { by, doneAt: now + between(scheduler, BACKUP_MILLISECONDS) })
    }
    if (now - (pointedAt.get(cluster.lineage) ?? 0) < POINT_MILLISECONDS) return
    pointedAt.set(cluster.lineage, now)
    archive.latest = now - 1
  }

  return {
    /** What it says of it afterwards. */
    archive(guest: AskedGuest, cluster: Cluster, at: NonNullable<Section['archive']>): ArchiveSaid {
      const now = scheduler.now().getTime()
      const failed = (failure: string): ArchiveSaid =>
        cluster.known === undefined
          ? { isOpen: false, failure, observedAt: iso(now), earliestAt: null, latestAt: null, gaps: [], backups: [] }
          : { ...cluster.known, failure }
      const bucket = bucketOf(stores, at.repository)
      if (bucket === 'away' || bucket === 'denied') return failed(`the store is ${bucket}`)
      const archive = archives.get(bucket) ?? { lineages: new Set(), backups: [], latest: undefined }
      archives.set(bucket, archive)
      if (archive.lineages.size > 0 && !archive.lineages.has(cluster.lineage)) {
        violations.push(
          `the archive ${at.repository.bucket} of ${[...archive.lineages].join()} gets ${cluster.lineage}`,
        )
        return failed('the archive is that of another system')
      }
      archive.lineages.add(cluster.lineage)
      work(guest, cluster, archive, at)
      return { isOpen: true, failure: '', observedAt: iso(now), gaps: [], ...windowOf(archive) }
    },
  }
}

function windowOf({ backups, latest }: Archive): Pick<ArchiveSaid, 'earliestAt' | 'latestAt' | 'backups'> {
  const whole = backups.flatMap(({ label, startedAt, completedAt }) =>
    completedAt === undefined ? [] : [{ label, startedAt, completedAt }],
  )
  const [first] = whole
  const begin = first && first.completedAt + 1_000
  const isOpen = begin !== undefined && latest !== undefined && latest >= begin
  return {
    earliestAt: isOpen ? iso(begin) : null,
    latestAt: isOpen ? iso(latest) : null,
    backups: whole.map(({ label, startedAt, completedAt }) => ({
      label,
      startedAt: iso(startedAt),
      completedAt: iso(completedAt),
      bytes: 1_000,
      isRestorable: true,
    })),
  }
}

/** The newest moment of a full backup by the schedule. */
function slotBefore(now: number, at: { readonly hour: number; readonly minute: number }): number {
  const slot = now - (now % DAY_MILLISECONDS) + (at.hour * 60 + at.minute) * 60_000
  return slot <= now ? slot : slot - DAY_MILLISECONDS
}
