/** Builds the images of the control plane and of the hosts' agent without a registry and without Docker: one archive
 *  (opencontainers.org, image layout) for each, for `ctr images import` and the like. They contain the Node that runs
 *  this, its libraries, and the files that the Dockerfile copies; not the packages that it installs: QEMU, the tools of
 *  Ceph and Open vSwitch, and ipmitool.
 *
 *  Command line: `node tools/images/main.ts FOLDER [TAG]`; `node tools/images/main.ts --control-planes FOLDER` builds
 *  those of the programs of control planes in pods, for the built releases. */
import { mkdir } from 'node:fs/promises'
import { answerHelp } from '../../kit/sys/help.ts'
import { printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { VERSION } from '../../domain/version.ts'
import { builtReleases, writeControlPlaneImages } from './control-planes.ts'
import { writeImages } from './write.ts'

answerHelp(import.meta.filename)
const words = processArguments()
const isOfControlPlanes = words[0] === '--control-planes'
const [folder, tag = VERSION] = isOfControlPlanes ? words.slice(1) : words
if (folder === undefined) {
  printErrorLine('usage: node tools/images/main.ts [--control-planes] FOLDER [TAG]')
  setExitCode(2)
} else {
  await mkdir(folder, { recursive: true })
  const files = isOfControlPlanes
    ? await writeControlPlaneImages(folder, await builtReleases())
    : await writeImages(folder, tag)
  for (const file of files) printLine(file)
}
