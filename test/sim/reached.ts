/** What a run of the simulation reaches: which faults struck, which requests were answered how, which objects were
 *  written by whom, how operations ended, and which faults struck while which operation went on. Seeds are chosen by it
 *  (`choose.ts`). Names and numbers that differ from seed to seed are left out. */
import type { Database } from '../../db/kit/open.ts'
import type { FinishedOperation } from '../../domain/operations.ts'

export interface Reached {
  /** Called for each step that counts for the fingerprint of the run. */
  note(at: Date, text: string): void
  /** Adds how the operations ended that are in the history. */
  addOperations(db: Database): Promise<void>
  list(): readonly string[]
}

/** Notes of faults: what follows is whom it struck. */
const FAULT = /^(fault|crash|cut|hide|disconnect|partition|reboot|guest) /
/** The API server's connections see these all the time. */
const COMMON = /^\S+ GET /
/** Of faults of one kind that are kept with their time; more of them reach nothing new. */
const TIMES_MAXIMUM = 200

export function newReached(): Reached {
  const reached = new Set<string>()
  const struckAt = new Map<string, number[]>()
  return {
    note(at, text) {
      if (COMMON.test(text)) return
      const general = generalised(text)
      reached.add(general)
      if (!FAULT.test(general)) return
      const times = struckAt.get(general) ?? []
      if (times.length < TIMES_MAXIMUM) struckAt.set(general, [...times, at.getTime()])
    },
    async addOperations(db) {
      const rows = await db.selectFrom('operation_history').select('body').execute()
      for (const row of rows) {
        // the product's own
        const { kind, status, step, actor, events, createdAt, finishedAt } = row.body as FinishedOperation
        reached.add(status === 'succeeded' ? `${kind} succeeded` : `${kind} ${status} at ${step}`)
        if (actor.startsWith('system:')) reached.add(`${kind} by ${actor}`)
        for (const event of events) reached.add(`${kind} event ${event.kind}`)
        const [from, to] = [Date.parse(createdAt), Date.parse(finishedAt)]
        for (const [fault, times] of struckAt)
          if (times.some((time) => time >= from && time <= to)) reached.add(`${fault} during ${kind}`)
      }
    },
    list: () => [...reached].toSorted(),
  }
}

/** Without ids, numbers of hosts and processes, and queries. */
const generalised = (text: string): string =>
  text
    .replace(/\?\S*/, '')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/\bID\.[0-9a-f]{16}\b/g, 'ID') // of an event, whose name is a hash of ids
    .replaceAll(/\b(agent|controllers|pool|node)-\w+/g, '$1')
    .replaceAll(/\b[ab]\d\b/g, 'HOST')
