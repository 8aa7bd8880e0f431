/** What happens to the platform beside the browser: the power of hosts. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import type { StaffParts } from './staff.ts'

/** Presses the button of a host's management controller. */
export async function pressPower(
  { endpoints, data }: StaffParts,
  node: string,
  type: 'On' | 'ForceOff',
): Promise<void> {
  const { username, password } = JSON.parse(await readFile(join(data, 'bmc/access.json'), 'utf8')) as {
    readonly username: string
    readonly password: string
  } // written by the product
  const dispatcher = new Agent({ connect: { ca: await readFile(join(data, 'bmc/ca.crt'), 'utf8') } })
  const { statusCode, body } = await request(
    `${endpoints.bmc_url}/redfish/v1/Systems/${node}/Actions/ComputerSystem.Reset`,
    {
      method: 'POST',
      dispatcher,
      headers: {
        'content-type': 'application/json',
        authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      },
      body: JSON.stringify({ ResetType: type }),
    },
  )
  await body.dump()
  await dispatcher.close()
  if (statusCode >= 300) throw new Error(`the management controller of ${node} answered ${statusCode}`)
}
