/** The process in the network namespace of the cloud that connects to servers: its parent listens on the machine, and
 *  hands it what connects there, with `{host, port}` where it is known where that is to go. Ends with its parent.
 *  Arguments: the networks that it leads to. */
import type { Socket } from 'node:net'
import {
  exitProcess,
  onFatal,
  onParentMessage,
  printErrorLine,
  processArguments,
  stopSignal,
} from '../../kit/sys/process.ts'
import { openDoor } from './door.ts'
import type { Destination } from './twins.ts'

onFatal((error) => printErrorLine(String(error)))
stopSignal().addEventListener('abort', () => exitProcess(0))
const door = openDoor(processArguments())
onParentMessage((message, handle) => {
  const client = handle as Socket | undefined // the parent sends nothing else
  const { host, port } = message as Partial<Destination> // the same
  if (client === undefined) return
  if (host === undefined || port === undefined) door.serve(client)
  else door.join(client, host, port)
})
