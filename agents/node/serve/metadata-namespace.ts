/** The process that is the network namespace of the metadata service, on hosts with a network of OVN: the service has
 *  the address 169.254.169.254 in it and nowhere else, so that it never conflicts with what the host itself reaches at
 *  that address. It prints `here` once the namespace exists, waits until its parent has moved the interface into it,
 *  hands the listening servers to the parent, and ends with the parent. Its packets have a hop limit of one: no answer
 *  to a guest is routed further. */
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

const METADATA_PORT = 80
/** Of the store of archives, as the machines of databases know it. */
const ARCHIVE_PORT = 443

onFatal((error) => printErrorLine(String(error)))
stopSignal().addEventListener('abort', () => exitProcess(0))
onParentMessage(() => void listen())
sendToParent({ is: 'here' })

async function listen(): Promise<void> {
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, METADATA_ADDRESS, resolve)
  })
  giveToParent({ is: what }, server)
}
