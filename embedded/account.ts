/** Accounts of this machine for programs that root starts. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Creates the account if it is missing, without a home or a login. For root only. */
export async function accountIds(name: string): Promise<{ readonly uid: number; readonly gid: number }> {
  const idOf = async (flag: string) => Number((await run('id', [flag, name])).stdout)
  await idOf('-u').catch(() =>
    run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', name]),
  )
  return { uid: await idOf('-u'), gid: await idOf('-g') }
}
