/** What only a node has: the ways in which it can be fenced, and its operations. */
import type { ReactNode } from 'react'
import type { Node } from '../../../../client/operator-schema.ts'
import { LaterOperations } from '../../../nouns/later.tsx'
import { number } from '../../../texts/format.ts'
import { Facts, Grid, Panel, Soft, Tile } from '../../../ui/layout.tsx'
import { State } from '../../../ui/state.tsx'
import { mebibytes } from '../../../texts/format.ts'
import { t } from '../../../texts/index.ts'
import { o } from '../../texts/index.ts'

interface NodeProps {
  readonly item: Node
}

export const NodeHead = ({ item }: NodeProps): ReactNode => (
  <>
    <Grid>
      <Tile name={t().fields.server_count} value={number(item.server_count)} />
      <Tile
        name={o().overview.vcpus}
        value={number(item.vcpus_used)}
        note={o().overview.of(`${number(item.logical_cpus)} CPU`)}
      />
      <Tile
        name={o().overview.memory}
        value={mebibytes(item.memory_used_mebibytes)}
        note={o().overview.of(mebibytes(item.memory_mebibytes))}
      />
    </Grid>
    <Ladder item={item} />
  </>
)

/** The evidence that fencing may use, in the order in which `auto` tries it. */
function Ladder({ item }: NodeProps): ReactNode {
  const texts = o().node
  const { bmc, storage, attest } = texts.rungs
  return (
    <Panel title={texts.ladder}>
      <Soft>{texts.ladderNote}</Soft>
      <Facts
        facts={[
          { name: `1. ${bmc}`, value: <Available is={item.bmc_configured} /> },
          // Without a BMC, only the storage can make a node one that is fenced by itself.
          ...(item.bmc_configured
            ? [{ name: `2. ${storage}`, value: texts.tried }]
            : [{ name: `2. ${storage}`, value: <Available is={item.fence_capable} /> }]),
          { name: `3. ${attest}`, value: <Available is /> },
        ]}
      />
    </Panel>
  )
}

const Available = ({ is }: { readonly is: boolean }): ReactNode => (
  <State look={is ? 'good' : 'off'}>{is ? o().node.has : o().node.hasNot}</State>
)

export const NodeOperations = ({ item }: NodeProps): ReactNode => <LaterOperations query={{ node_id: item.id }} />
