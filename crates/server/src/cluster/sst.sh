#!/bin/sh
# Gives a node that joins the data of another one on the same machine. Galera calls it on both sides: wsrep_sst_whyso.
# The one that joins says where its data lie, with a word that stands in a file there. Its folder is closed to others, so nobody else knows the word,
# and the other one touches no folder without it. It copies its own data there, and then leaves the position up to which they go.
set -eu

role= address= datadir= parent= position= domain= has_data=
while [ $# -gt 0 ]; do
	case $1 in
	--role) role=$2 && shift ;;
	--address) address=$2 && shift ;;
	--datadir) datadir=${2%/} && shift ;;
	--parent) parent=$2 && shift ;;
	--gtid) position=$2 && shift ;;
	--gtid-domain-id) domain=$2 && shift ;;
	--bypass) has_data=yes ;;
	--mysqld-args) break ;;
	esac
	shift
done

# What belongs to the node itself.
own() {
	case $1 in
	galera.cache | grastate.dat | gvwstate.dat | sst-* | tables_flushed | auto.cnf) return 0 ;;
	esac
	return 1
}

case $role in
joiner)
	rm -f "$datadir/sst-position"
	word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	(umask 077 && echo "$word" >"$datadir/sst-word")
	echo "ready 127.0.0.1:1$datadir/$word"
	while [ ! -e "$datadir/sst-position" ]; do
		kill -0 "$parent" 2>/dev/null || exit 32
		sleep 0.1
	done
	cat "$datadir/sst-position"
	rm "$datadir/sst-position" "$datadir/sst-word"
	;;
donor)
	path=/${address#*/}
	to=${path%/*}
	word=${path##*/}
	if [ -z "$word" ] || [ -L "$to/sst-word" ] || [ "$(cat "$to/sst-word" 2>/dev/null)" != "$word" ]; then
		echo "whyso: no node that joins has asked for data in '$to'" >&2
		exit 1
	fi
	if [ -z "$has_data" ]; then
		rm -f "$datadir/tables_flushed"
		echo "flush tables"
		while [ ! -r "$datadir/tables_flushed" ]; do
			kill -0 $PPID 2>/dev/null || exit 32
			sleep 0.1
		done
		position=$(cat "$datadir/tables_flushed")
		rm "$datadir/tables_flushed"
		for path in "$to"/*; do
			own "${path##*/}" || rm -rf "$path"
		done
		for path in "$datadir"/*; do
			own "${path##*/}" || cp -a "$path" "$to"
		done
		echo continue
	else
		position="$position $domain"
	fi
	echo "$position" >"$to/sst-position.new"
	mv "$to/sst-position.new" "$to/sst-position"
	echo "done $position"
	;;
*)
	echo "whyso: '$role' is neither donor nor joiner" >&2
	exit 22
	;;
esac
