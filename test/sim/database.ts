/** A real PostgreSQL under the simulation. Connections are handed out one at a time, in the order of the requests, so
 *  that the run does not depend on the database's speed; a process that dies in a transaction loses it; faults break
 *  connections before a statement, before COMMIT, or after it (the commit happened, the answer is lost). */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import pg from 'pg'
import type { Tables } from '../../db/tables.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

export interface DatabaseFaults {
  /** Asked before every statement; true breaks the connection. */
  breaksBefore(processName: string, sql: string): boolean
  /** Asked at every COMMIT that went through; true loses its answer. */
  losesCommit(processName: string): boolean
  /** Asked after every statement and commit; true kills the process right there. */
  crashesAfter(processName: string): boolean
}

class ConnectionLost extends Error {
  readonly code = '57P01'
  constructor() {
    super('terminating connection due to administrator command')
    this.name = 'ConnectionLost'
  }
}

/** The one real connection and the queue before it. */
export class SimulatedPostgres {
  readonly #client: pg.Client
  readonly #scheduler: Scheduler
  readonly #waiting: (() => void)[] = []
  #isBusy = false

  constructor(client: pg.Client, scheduler: Scheduler) {
    this.#client = client
    this.#scheduler = scheduler
  }

  async acquire(): Promise<void> {
    if (!this.#isBusy) {
      this.#isBusy = true
      return
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  release(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#isBusy = false
    else next()
  }

  query(sql: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    return this.#scheduler.track(
      this.#client.query(
        parameters.length === 0 ? { text: sql } : { name: nameOf(sql), text: sql, values: [...parameters] },
      ),
    )
  }
}

const names = new Map<string, string>()

/** Statements with names are parsed and planned once for all seeds of a connection, which is most of what they cost. */
function nameOf(sql: string): string {
  const name = names.get(sql) ?? `statement_${names.size}`
  names.set(sql, name)
  return name
}

class SimulatedConnection implements DatabaseConnection {
  readonly #postgres: SimulatedPostgres
  readonly #process: SimulatedProcess
  readonly #faults: DatabaseFaults
  isInTransaction = false
  isBroken = false
  isReleased = false

  constructor(postgres: SimulatedPostgres, process: SimulatedProcess, faults: DatabaseFaults) {
    this.#postgres = postgres
    this.#process = process
    this.#faults = faults
    const epoch = process.epoch
    process.onCrash(() => {
      if (process.epoch !== epoch && !this.isReleased) void this.abandon()
    })
  }

  /** The server side of a client that vanished: its transaction is rolled back, then others go on. */
  async abandon(): Promise<void> {
    if (this.isReleased) return
    this.isReleased = true
    if (this.isInTransaction) await this.#postgres.query('rollback', [])
    this.isInTransaction = false
    this.#postgres.release()
  }

  async #break(): Promise<never> {
    this.isBroken = true
    if (this.isInTransaction) await this.#postgres.query('rollback', [])
    this.isInTransaction = false
    throw new ConnectionLost()
  }

  async run(sql: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.isBroken) throw new ConnectionLost()
    if (this.#faults.breaksBefore(this.#process.name, sql)) return await this.#break()
    // Before it is answered: a process that dies meanwhile leaves a transaction.
    if (sql === 'begin') this.isInTransaction = true
    const result = await this.#process.bound(this.#postgres.query(sql, parameters))
    if (sql === 'commit' || sql === 'rollback') this.isInTransaction = false
    if (this.#faults.crashesAfter(this.#process.name)) {
      this.#process.crash()
      return await new Promise<never>(() => {})
    }
    if (sql === 'commit' && this.#faults.losesCommit(this.#process.name)) return await this.#break()
    return result
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const result = await this.run(query.sql, query.parameters)
    const changesRows = result.command === 'INSERT' || result.command === 'UPDATE' || result.command === 'DELETE'
    // rows are of the shape that the statement selects
    return { rows: result.rows as R[], ...(changesRows ? { numAffectedRows: BigInt(result.rowCount ?? 0) } : {}) }
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query)
  }
}

class SimulatedDriver implements Driver {
  readonly #open: () => Promise<SimulatedConnection>
  constructor(open: () => Promise<SimulatedConnection>) {
    this.#open = open
  }
  async init(): Promise<void> {}
  async destroy(): Promise<void> {}
  acquireConnection(): Promise<DatabaseConnection> {
    return this.#open()
  }
  async beginTransaction(connection: DatabaseConnection, _settings: TransactionSettings): Promise<void> {
    await (connection as SimulatedConnection).run('begin', []) // every connection comes from #open
  }
  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await (connection as SimulatedConnection).run('commit', [])
  }
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    const simulated = connection as SimulatedConnection
    if (!simulated.isBroken) await simulated.run('rollback', [])
  }
  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    const simulated = connection as SimulatedConnection
    if (!simulated.isReleased) await simulated.abandon()
  }
}

/** The database as the process sees it in its current epoch. */
export function databaseOf(
  process: SimulatedProcess,
  postgres: SimulatedPostgres,
  faults: DatabaseFaults,
): Kysely<Tables> {
  const open = async () => {
    const epoch = process.epoch
    await postgres.acquire()
    if (!process.isAlive(epoch)) {
      postgres.release()
      return await new Promise<never>(() => {})
    }
    return new SimulatedConnection(postgres, process, faults)
  }
  return new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new SimulatedDriver(open),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })
}
