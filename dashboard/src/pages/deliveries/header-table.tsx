/** Headers as they were: names and values are text, whatever they hold. */
import { Copy } from '../../parts/copy.tsx';
import styles from './header-table.module.css';

export function HeaderTable({ label, headers }: { label: string; headers: Record<string, string> }) {
  const lines = Object.entries(headers);
  if (lines.length === 0) return <p className={styles.none}>None.</p>;
  return (
    <div className={styles.box}>
      <table aria-label={label}>
        <tbody>
          {lines.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className={styles.copy}>
        <Copy
          value={() => lines.map(([name, value]) => `${name}: ${value}`).join('\n')}
          label={`Copy: ${label}`}
        />
      </div>
    </div>
  );
}
