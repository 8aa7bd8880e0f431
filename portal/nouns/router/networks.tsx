/** The networks that a router joins. */
import type { ReactNode } from 'react'
import type { Router } from '../../../client/schema.ts'
import { useMay } from '../../api/session.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Panel, Soft, Stack } from '../../ui/layout.tsx'
import { Table } from '../../ui/table.tsx'
import { type Question, useQuestion } from '../ask.tsx'
import { Value } from '../value.tsx'

type Joined = Router['networks'][number]

const detachment = ({ id }: Router, { network_id: network, ipv4_address: address }: Joined): Question => ({
  operation: 'detach_router_network',
  path: { id, network_id: network },
  title: t().choices.confirm(t().server.detach, address),
  button: t().server.detach,
  goes: [t().server.goesInterface(address)],
})

export function NetworksTab({ item }: { readonly item: Router }): ReactNode {
  const [ask, dialog] = useQuestion(['get_router', 'list_routers', 'list_operations'])
  const may = useMay()
  return (
    <Stack>
      {item.networks.length === 0 ? (
        <Panel>
          <Soft>{t().ui.none}</Soft>
        </Panel>
      ) : (
        <Table
          label={t().fields.networks}
          items={item.networks.map((each) => ({ ...each, id: each.network_id }))}
          columns={[
            {
              id: 'network',
              name: t().fields.network_id,
              cell: (each) => <Value field="network_id" value={each.network_id} />,
            },
            { id: 'ipv4', name: 'IPv4', cell: ({ ipv4_address: address }) => address },
            { id: 'ipv6', name: 'IPv6', cell: ({ ipv6_address: address }) => address },
            {
              id: 'leave',
              name: t().list.actions,
              isEnd: true,
              cell: (each) =>
                may('detach_router_network') ? (
                  <Button kind="quiet" onPress={() => ask(detachment(item, each))}>
                    {t().server.detach}
                  </Button>
                ) : (
                  '–'
                ),
            },
          ]}
        />
      )}
      {dialog}
    </Stack>
  )
}
