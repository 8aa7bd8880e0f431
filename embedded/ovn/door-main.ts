/** The process in the network namespace of the cloud that connects to servers: its parent listens on the machine, and
 *  hands it what connects there, with `{host, port}` where it is known where that is to go. Nodes of clusters reach
 *  their control planes by it (SVCCLOUD_NODES_DOOR). Ends with its parent. Arguments: the networks that it leads to. */
import type { Socket } from 'node:net'
import {
  environment,
  exitProcess,
  onFatal,
  onParentMessage,
  printErrorLine,
  processArguments,
  stopSignal,
} from '../../kit/sys/process.ts'
import { openDoor } from './door.ts'
import { openNodesDoor, readNodesDoor } from './nodes-door.ts'
import type { Destination } from './twins.ts'

onFatal((error) => printErrorLine(String(error)))
stopSignal().addEventListener('abort', () => exitProcess(0))
const door = openDoor(processArguments())
const nodes = environment()['SVCCLOUD_NODES_DOOR']
if (nodes !== undefined)
  openNodesDoor(readNodesDoor(nodes)).catch((error: unknown) => {
    printErrorLine(`nodes reach no control plane: ${String(error)}`)
    exitProcess(1)
  })
onParentMessage((message, handle) => {
  const client = handle as Socket | undefined // the parent sends nothing else
  const { host, port } = message as Partial<Destination> // the same
  if (client === undefined) return
  if (host === undefined || port === undefined) door.serve(client)
  else door.join(client, host, port)
})
