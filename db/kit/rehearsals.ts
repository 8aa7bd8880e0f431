/** The database's driver during dry runs: a transaction is rolled back where it would be committed, and outside of
 *  transactions PostgreSQL refuses to write. */
import { CompiledQuery, type DatabaseConnection, type Dialect, type Driver } from 'kysely'
import { isRehearsing } from '../../kit/sys/rehearsal.ts'

interface Rehearsed extends DatabaseConnection {
  readonly connection: DatabaseConnection
  isInTransaction: boolean
}

/** The dialect, with a driver that keeps nothing of dry runs. */
export const withRehearsals = (dialect: Dialect): Dialect => ({
  createAdapter: () => dialect.createAdapter(),
  createIntrospector: (db) => dialect.createIntrospector(db),
  createQueryCompiler: () => dialect.createQueryCompiler(),
  createDriver: () => rehearsed(dialect.createDriver()),
})

function rehearsed(driver: Driver): Driver {
  const known = new WeakMap<DatabaseConnection, Rehearsed>()
  const own = (connection: DatabaseConnection) => known.get(connection)?.connection ?? connection
  return {
    init: (options) => driver.init(options),
    destroy: (options) => driver.destroy(options),
    async acquireConnection(options) {
      const connection = await driver.acquireConnection(options)
      if (!isRehearsing()) return connection
      const rehearsal = rehearsedConnection(connection)
      known.set(rehearsal, rehearsal)
      return rehearsal
    },
    releaseConnection: (connection, options) => driver.releaseConnection(own(connection), options),
    async beginTransaction(connection, settings) {
      await driver.beginTransaction(own(connection), settings)
      setInTransaction(known.get(connection), true)
    },
    async commitTransaction(connection) {
      const rehearsal = known.get(connection)
      if (rehearsal === undefined) return driver.commitTransaction(connection)
      // What a commit checks: constraints that wait for it, and that no statement has failed.
      await rehearsal.connection.executeQuery(CompiledQuery.raw('set constraints all immediate'))
      await rollback(connection)
    },
    rollbackTransaction: rollback,
    savepoint: (connection, name, compile) => required(driver.savepoint?.(own(connection), name, compile)),
    rollbackToSavepoint: (connection, name, compile) =>
      required(driver.rollbackToSavepoint?.(own(connection), name, compile)),
    releaseSavepoint: (connection, name, compile) =>
      required(driver.releaseSavepoint?.(own(connection), name, compile)),
  }

  async function rollback(connection: DatabaseConnection): Promise<void> {
    await driver.rollbackTransaction(own(connection))
    setInTransaction(known.get(connection), false)
  }
}

/** Statements outside of a transaction get one that is read-only. */
function rehearsedConnection(connection: DatabaseConnection): Rehearsed {
  const rehearsal: Rehearsed = {
    connection,
    isInTransaction: false,
    async executeQuery<Row>(query: CompiledQuery) {
      if (rehearsal.isInTransaction) return connection.executeQuery<Row>(query)
      await connection.executeQuery(CompiledQuery.raw('begin read only'))
      try {
        return await connection.executeQuery<Row>(query)
      } finally {
        await connection.executeQuery(CompiledQuery.raw('rollback'))
      }
    },
    streamQuery() {
      throw new Error('a dry run reads no stream')
    },
  }
  return rehearsal
}

function setInTransaction(rehearsal: Rehearsed | undefined, isInTransaction: boolean): void {
  if (rehearsal !== undefined) rehearsal.isInTransaction = isInTransaction
}

async function required(done: Promise<void> | undefined): Promise<void> {
  if (done === undefined) throw new Error('the driver has no savepoints')
  await done
}
