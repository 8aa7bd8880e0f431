/** The database's driver during dry runs: a transaction is rolled back where it would be committed, and outside of
 *  transactions PostgreSQL refuses to write. */
import { CompiledQuery, type DatabaseConnection, type Dialect, type Driver } from 'kysely'
import { isDryRun } from '../../kit/sys/dry-run.ts'

interface DryConnection extends DatabaseConnection {
  readonly connection: DatabaseConnection
  isInTransaction: boolean
}

/** The dialect, with a driver that keeps nothing of dry runs. */
export const withDryRuns = (dialect: Dialect): Dialect => ({
  createAdapter: () => dialect.createAdapter(),
  createIntrospector: (db) => dialect.createIntrospector(db),
  createQueryCompiler: () => dialect.createQueryCompiler(),
  createDriver: () => dryDriver(dialect.createDriver()),
})

function dryDriver(driver: Driver): Driver {
  const known = new WeakMap<DatabaseConnection, DryConnection>()
  const own = (connection: DatabaseConnection) => known.get(connection)?.connection ?? connection
  return {
    init: (options) => driver.init(options),
    destroy: (options) => driver.destroy(options),
    async acquireConnection(options) {
      const connection = await driver.acquireConnection(options)
      if (!isDryRun()) return connection
      const dry = dryConnection(connection)
      known.set(dry, dry)
      return dry
    },
    releaseConnection: (connection, options) => driver.releaseConnection(own(connection), options),
    async beginTransaction(connection, settings) {
      await driver.beginTransaction(own(connection), settings)
      setInTransaction(known.get(connection), true)
    },
    async commitTransaction(connection) {
      const dry = known.get(connection)
      if (dry === undefined) return driver.commitTransaction(connection)
      // What a commit checks: constraints that wait for it, and that no statement has failed.
      await dry.connection.executeQuery(CompiledQuery.raw('set constraints all immediate'))
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
function dryConnection(connection: DatabaseConnection): DryConnection {
  const dry: DryConnection = {
    connection,
    isInTransaction: false,
    async executeQuery<Row>(query: CompiledQuery) {
      if (dry.isInTransaction) return connection.executeQuery<Row>(query)
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
  return dry
}

function setInTransaction(dry: DryConnection | undefined, isInTransaction: boolean): void {
  if (dry !== undefined) dry.isInTransaction = isInTransaction
}

async function required(done: Promise<void> | undefined): Promise<void> {
  if (done === undefined) throw new Error('the driver has no savepoints')
  await done
}
