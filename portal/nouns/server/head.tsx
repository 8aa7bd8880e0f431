/** What somebody wants to know first of a server: how to sign in to it, and what is in the way. */
import type { ReactNode } from 'react'
import type { Server } from '../../../client/schema.ts'
import { utc } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Copy } from '../../ui/copy.tsx'
import { Facts, Panel } from '../../ui/layout.tsx'
import { Note } from '../../ui/state.tsx'

export function ServerHead({ item }: { readonly item: Server }): ReactNode {
  const isNew = item.state === 'creating'
  return (
    <>
      {item.maintenance === null ? null : (
        <Note look="busy">
          {utc(item.maintenance.planned_at)}: {item.maintenance.reason}
        </Note>
      )}
      {item.network_status_reason === null || isNew ? null : <Note>{item.network_status_reason}</Note>}
      {item.ssh_command === null || isNew ? null : (
        <Panel>
          <Facts facts={[{ name: t().fields.ssh_command, value: <Copy text={item.ssh_command} /> }]} />
        </Panel>
      )}
    </>
  )
}
