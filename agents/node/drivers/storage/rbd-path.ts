/** How a disk in a Ceph cluster is named: as the programs of QEMU take it, so that a path says what kind of disk it is
 *  of. */

/** An image of a pool, and the client of the cluster as whom it is opened. */
export interface RbdImage {
  readonly pool: string
  readonly image: string
  readonly user: string
}

/** What needs no escaping anywhere. */
export const CEPH_NAME = /^[a-zA-Z0-9][-a-zA-Z0-9._]*$/
const PATH = /^rbd:([-a-zA-Z0-9._]+)\/([-a-zA-Z0-9._]+):id=([-a-zA-Z0-9._]+)$/

export const rbdPath = ({ pool, image, user }: RbdImage): string => `rbd:${pool}/${image}:id=${user}`

/** Undefined when the path is a file's. */
export function readRbdPath(path: string): RbdImage | undefined {
  const [, pool, image, user] = PATH.exec(path) ?? []
  return pool === undefined || image === undefined || user === undefined ? undefined : { pool, image, user }
}

/** The same for a program of the host, which is told where the cluster is. */
export function rbdProgramPath(
  { pool, image, user }: RbdImage,
  { configuration, snapshot }: { readonly configuration: string; readonly snapshot?: string },
): string {
  const point = snapshot === undefined ? '' : `@${snapshot}`
  return `rbd:${pool}/${image}${point}:id=${user}:conf=${configuration.replaceAll(/[\\:]/g, String.raw`\$&`)}`
}

/** What is in a disk that was made here: images of Ceph hold the disk itself, files are qcow2. */
export const formatOf = (path: string): 'raw' | 'qcow2' => (path.startsWith('rbd:') ? 'raw' : 'qcow2')
