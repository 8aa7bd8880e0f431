/** Zones to claim room in, and what claims are refused with. */
import type { Database } from '../../db/kit/open.ts'
import { mirrorNode } from '../../db/placement/nodes.ts'
import { Problem } from '../../domain/problem.ts'

/** Of a server that is to have room. */
export const ROOM = { cores: 1, memoryMebibytes: 128, storageGibibytes: 1 }

/** A zone with one node, `<zone>-node`. */
export const openZone = (
  db: Database,
  zone: string,
  total = { cores: 64, memoryMebibytes: 65_536, storageGibibytes: 1_000 },
): Promise<unknown> =>
  mirrorNode(db, {
    node: `${zone}-node`,
    zone,
    rack: 'rack-1',
    cpuPool: null,
    dedicatedAccountId: null,
    isSchedulable: true,
    total,
  })

/** As `409 in_use`, or with the field that is wrong; undefined when it was not refused. */
export const refusalOf = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    (error: unknown) =>
      error instanceof Problem
        ? [error.status, error.members.reason ?? error.members.errors?.[0]?.field].join(' ').trim()
        : Promise.reject(error),
  )
