/** Contents of the image of nodes besides Debian's packages: the programs of Kubernetes, and images of containers that
 *  no registry has. Each of these images is created here from one program. */
import { chmod, constants, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  BUILD_KUBERNETES_COMMAND,
  BUSYBOX_IMAGE,
  COREDNS_IMAGE,
  COREDNS_VERSION,
  DEV_CLUSTER_RELEASES,
  ETCD_VERSION,
  KUBERNETES_RELEASES,
  LOCAL_PATH_VERSION,
  PAUSE_IMAGE,
  PAUSE_VERSION,
  TUNNEL_VERSION,
} from '../../../../domain/kubernetes-cluster/versions.ts'
import { NEWEST_RELEASE } from '../../../../integrations/control-planes/programs.ts'
import { toolsFolder } from '../../../../kit/sys/tools-folder.ts'
import { VERSION } from '../../../../domain/version.ts'
import { ociArchive } from '../oci-archive.ts'
import { ImageUnavailable } from '../recipe.ts'
import { tarOf } from '../tar.ts'
import { isThere } from '../../../../kit/sys/is-there.ts'

/** Folder in the guest, as in `kubernetes.py`. */
const PROGRAMS = 'opt/kubernetes'
const INDEX = 'usr/share/svccloud/images.json'

/** Version of the format of these container images. A new one causes new images of guests. */
const ARCHIVE_VERSION = '2'

export const NODE_VERSIONS = [
  ARCHIVE_VERSION,
  KUBERNETES_RELEASES,
  TUNNEL_VERSION,
  BUSYBOX_IMAGE,
  COREDNS_VERSION,
  PAUSE_VERSION,
  VERSION,
]

export const DEV_CLUSTER_VERSIONS = [
  ARCHIVE_VERSION,
  DEV_CLUSTER_RELEASES,
  ETCD_VERSION,
  LOCAL_PATH_VERSION,
  BUSYBOX_IMAGE,
  COREDNS_VERSION,
  PAUSE_VERSION,
  VERSION,
]

export interface NodePrograms {
  /** Path on this host by path in the guest. */
  readonly files: Readonly<Record<string, string>>
  /** The only program of each image, by the image's name. */
  readonly images: Readonly<Record<string, string>>
}

/** Finds the programs that were built for the releases of the control planes here, at least for one release. `root` is
 *  the new system, whose packages contain the program of the third image. Throws ImageUnavailable with the command that
 *  builds them. */
export async function findNodePrograms(root: string, folder = toolsFolder()): Promise<NodePrograms> {
  const files: Record<string, string> = {
    [`${PROGRAMS}/konnectivity-agent`]: join(folder, TUNNEL_VERSION, 'konnectivity-agent'),
  }
  const of = (release: string, name: string) => join(folder, `v${release}`, name)
  const areHere = await Promise.all(
    KUBERNETES_RELEASES.map((release) => isThere(of(release, 'kube-apiserver'), constants.X_OK)),
  )
  const here = KUBERNETES_RELEASES.filter((_, index) => areHere[index])
  for (const release of here.length === 0 ? [NEWEST_RELEASE] : here)
    for (const name of ['kubelet', 'kube-proxy']) files[`${PROGRAMS}/${release}/${name}`] = of(release, name)
  return requireBuilt({ files, images: clusterImages(root, folder) })
}

/** The same for a complete cluster. */
export async function findDevClusterPrograms(root: string, folder = toolsFolder()): Promise<NodePrograms> {
  const files: Record<string, string> = {
    [`${PROGRAMS}/etcd`]: join(folder, ETCD_VERSION, 'etcd'),
    [`${PROGRAMS}/local-path-provisioner`]: join(folder, LOCAL_PATH_VERSION, 'local-path-provisioner'),
  }
  for (const release of DEV_CLUSTER_RELEASES)
    for (const name of ['kubelet', 'kube-proxy', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'])
      files[`${PROGRAMS}/${release}/${name}`] = join(folder, `v${release}`, name)
  return requireBuilt({ files, images: clusterImages(root, folder) })
}

async function requireBuilt(programs: NodePrograms): Promise<NodePrograms> {
  for (const path of [...Object.values(programs.files), ...Object.values(programs.images)])
    if (!(await isThere(path, constants.X_OK)))
      throw new ImageUnavailable(
        `its programs are not built: ${BUILD_KUBERNETES_COMMAND}; ${path} is missing (SVCCLOUD_TOOLS names another ` +
          'folder of programs, which sudo may need)',
      )
  return programs
}

const clusterImages = (root: string, folder: string): NodePrograms['images'] => ({
  [BUSYBOX_IMAGE]: join(root, 'usr/bin/busybox'),
  [PAUSE_IMAGE]: join(folder, `pause-${PAUSE_VERSION}`, 'pause'),
  [COREDNS_IMAGE]: join(folder, `v${COREDNS_VERSION}`, 'coredns'),
})

/** Copies the programs to the new system. */
export async function putNodePrograms(root: string, { files, images }: NodePrograms): Promise<void> {
  for (const [path, from] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await copyFile(from, join(root, path))
    await chmod(join(root, path), 0o755)
  }
  await mkdir(dirname(join(root, INDEX)), { recursive: true })
  await writeFile(join(root, INDEX), JSON.stringify(Object.keys(images)))
}

/** Writes the archive of each image (opencontainers.org, image layout) to a folder. */
export async function writeArchives(folder: string, { images }: Pick<NodePrograms, 'images'>): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, program] of Object.entries(images))
    await writeFile(
      join(folder, `${name.replaceAll(/[/:]/g, '-')}.tar`),
      await imageArchive(name, program, NAMES_IN_IMAGE[name]),
    )
}

/** Names in the image for programs that act according to the name they are called by. The image runs the first one. */
const NAMES_IN_IMAGE: Readonly<Record<string, readonly string[]>> = {
  [BUSYBOX_IMAGE]: [
    'sh',
    'busybox',
    'awk',
    'cat',
    'cp',
    'cut',
    'date',
    'df',
    'du',
    'echo',
    'env',
    'false',
    'find',
    'free',
    'grep',

    'gunzip',
    'gzip',
    'head',
    'hostname',
    'httpd',
    'id',
    'ip',
    'kill',
    'ln',
    'ls',
    'md5sum',
    'mkdir',
    'mount',
    'mv',
    'nc',
    'nslookup',
    'ping',
    'printf',
    'ps',
    'pwd',
    'rm',
    'rmdir',
    'sed',
    'seq',
    'sha256sum',
    'sleep',
    'sort',
    'stat',
    'sync',
    'tail',
    'tar',
    'tee',
    'test',
    'time',
    'top',
    'touch',
    'tr',
    'true',
    'uname',
    'uptime',
    'vi',
    'wc',
    'wget',
    'xargs',
  ].map((name) => `bin/${name}`),
}

/** An image that contains only this program, which it runs, and a folder for temporary files. The same program gives
 *  the same bytes. */
export async function imageArchive(
  name: string,
  program: string,
  names: readonly string[] = [program.split('/').at(-1) ?? program],
): Promise<Buffer> {
  const [entry = ''] = names
  const content = await readFile(program)
  const nothing = Buffer.alloc(0)
  const other = { content: nothing, linkTo: entry }
  const files = names.map((each, index) => ({ name: each, mode: 0o755, ...(index === 0 ? { content } : other) }))
  return ociArchive({
    name,
    layers: [tarOf([{ name: 'tmp/', mode: 0o1777, content: nothing }, ...files])],
    config: { Entrypoint: [`/${entry}`], Env: ['PATH=/:/bin'], WorkingDir: '/' },
  })
}
