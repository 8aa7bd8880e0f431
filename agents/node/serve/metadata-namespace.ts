/** The process that owns the network namespace of the metadata service, on hosts with a network of OVN. The service has
 *  the address 169.254.169.254 only in this namespace, so that it never conflicts with the host's own use of that
 *  address. The process prints `here` once the namespace exists, waits until its parent has moved the interface into
 *  it, passes the listening servers to the parent, and exits with the parent. Its packets have a hop limit of one: no
 *  answer to a guest is routed further. */
import { createServer } from 'node:net'
import { METADATA_ADDRESS, METADATA_MAC } from '../../../domain/network/metadata-service.ts'
import {
  exitProcess,
  giveToParent,
  onFatal,
  onParentMessage,
  printErrorLine,
  stopSignal,
  sendToParent,
} from '../../../kit/sys/process.ts'
import { OVN_MTU } from '../drivers/network/ovn.ts'
import { runProgram } from '../run-program.ts'
import { INNER_INTERFACE } from './metadata-port.ts'
import { listen } from '../../../kit/sys/listen.ts'

const METADATA_PORT = 80
/** Port of the store of archives, for the machines of databases. */
const ARCHIVE_PORT = 443

onFatal((error) => printErrorLine(String(error)))
stopSignal().addEventListener('abort', () => exitProcess(0))
onParentMessage(() => void giveListeners())
sendToParent({ is: 'here' })

async function giveListeners(): Promise<void> {
  await runProgram('ethtool', ['-K', INNER_INTERFACE, 'tx', 'off'])
  const ip = (...input: readonly string[]) => runProgram('ip', input)
  await ip('link', 'set', INNER_INTERFACE, 'address', METADATA_MAC, 'mtu', String(OVN_MTU), 'up')
  await ip('address', 'add', `${METADATA_ADDRESS}/32`, 'dev', INNER_INTERFACE)
  await ip('route', 'add', 'default', 'dev', INNER_INTERFACE, 'hoplimit', '1')
  await give('archive', ARCHIVE_PORT)
  await give('listening', METADATA_PORT)
}

async function give(what: string, port: number): Promise<void> {
  const server = createServer()
  await listen(server, { host: METADATA_ADDRESS, port })
  giveToParent({ is: what }, server)
}
