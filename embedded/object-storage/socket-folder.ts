/** Where the engine's sockets are. Their paths may have no more than 107 characters, and folders of data are anywhere:
 *  so they are among the system's temporary files. A link in the folder of data says where, and whoever starts there
 *  next removes what one that was killed has left. */
import { mkdtemp, readlink, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const LINK = 'sockets'
const PREFIX = 'svccloud-s3-'

/** Makes one that is empty, for the owner of this process only. `folder` is there. */
export async function makeSocketFolder(folder: string): Promise<string> {
  await removeSocketFolder(folder)
  const made = await mkdtemp(join(tmpdir(), PREFIX))
  await symlink(made, join(folder, LINK))
  return made
}

/** Removes the last one, if there is any. */
export async function removeSocketFolder(folder: string): Promise<void> {
  const link = join(folder, LINK)
  const last = await readlink(link).catch(() => undefined)
  if (last !== undefined && dirname(last) === tmpdir() && last.startsWith(join(tmpdir(), PREFIX)))
    await rm(last, { recursive: true, force: true })
  await rm(link, { force: true })
}
